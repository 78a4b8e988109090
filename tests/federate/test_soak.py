"""Two minutes of what `make soak` does for an hour each."""

import pytest

from tests.federate import soak

pytestmark = pytest.mark.slow


def test_clients_come_and_go(tmp_path):
    found = soak.main(2, tmp_path)
    assert found["joins"] > soak.CLIENTS
    assert found["uploads"] > 100


def test_without_faults_there_is_no_alarm(tmp_path):
    assert soak.main(2, tmp_path, peaceful=True)["uploads"] > 100
