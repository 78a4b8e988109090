"""Persistence: the state that a client stores on disk is read back unchanged."""

import jax
import numpy as np
import pytest

from mainstem.base import Sample
from mainstem.engines.federate.client.kernels import Kernels
from mainstem.engines.federate.client.persistence import Persistence
from mainstem.engines.federate.client.state import ClientState
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.errors import BrokenRun

CONTENT = {
    "problem": {"name": "linear", "features": 3},
    "algorithm": {"name": "fedogd", "step": 0.1, "sync": {"name": "every", "period": 4}},
    "federate": {"run": "stored", "clients": 2, "dtype": "float64"},
}


@pytest.fixture(scope="module")
def kernels():
    return Kernels(parse(CONTENT))


def learnt(kernels, steps):
    """The state of a client that has learnt, so that it is not the first one."""
    client_state, draw = ClientState(kernels, 1), np.random.default_rng(2)
    for _ in range(steps):
        x = draw.normal(size=3)
        batch = Sample(x[None], np.array([x.sum()]))
        client_state.learn_many(batch, 1)
    return client_state


def test_state_and_all_uploads_under_way_come_back(kernels, tmp_path):
    client_state, pending = learnt(kernels, 3), {4: b"first", 8: b"second", 12: b""}
    persistence = Persistence(tmp_path / "client")
    persistence.save(client_state, pending)
    persistence.close()
    again, found = ClientState(kernels, 1), Persistence(tmp_path / "client")
    assert found.load(again) == pending
    found.close()
    assert again.progress == client_state.totals()
    assert again.step == 3
    for one, other in zip(
        jax.tree.leaves(again.client), jax.tree.leaves(client_state.client), strict=True
    ):
        assert np.array_equal(one, other)


def test_another_clients_folder_is_refused(kernels, tmp_path):
    persistence = Persistence(tmp_path)
    persistence.save(learnt(kernels, 1), {})
    with pytest.raises(BrokenRun, match="belongs to another run or client"):
        persistence.load(ClientState(kernels, 0))
