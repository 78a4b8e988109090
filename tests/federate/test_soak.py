"""Two minutes of what `make soak` does for an hour."""

import pytest

from tests.federate import soak

pytestmark = pytest.mark.slow


def test_clients_come_and_go(tmp_path):
    found = soak.main(2, tmp_path)
    assert found["joins"] > soak.CLIENTS
    assert found["uploads"] > 100
