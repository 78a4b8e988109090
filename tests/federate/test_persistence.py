"""Persistence: the state that a client stores on disk is read back unchanged."""

import asyncio

import jax
import numpy as np
import pytest

from mainstem.base import Sample
from mainstem.engines.federate import faults
from mainstem.engines.federate.client.kernels import Kernels
from mainstem.engines.federate.client.persistence import Persistence
from mainstem.engines.federate.client.state import ClientState
from mainstem.engines.federate.client.uplink import Uplink
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.protocol.state_format import unpack
from mainstem.errors import BadData, BrokenRun
from tests.federate.in_process import joined, run_content, serving, until

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


def test_a_damaged_state_is_refused(kernels, tmp_path):
    persistence = Persistence(tmp_path)
    persistence.save(learnt(kernels, 1), {4: b"first"})
    file = tmp_path / "client.state"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1  # in the last upload
    file.write_bytes(data)
    with pytest.raises(BadData, match="is damaged"):
        persistence.load(ClientState(kernels, 1))


def test_an_upload_is_stored_before_it_is_sent_and_sent_after_a_kill(
    nats_server, tmp_path, monkeypatch
):
    """The client dies with two uploads that it has not sent. The one that returns sends both."""
    x, stored = [1.0, 2.0, 3.0], []

    def at_point(point):
        if point == "client after save":
            stored.append(set(unpack((tmp_path / "client.state").read_bytes()).values["pending"]))

    async def never_sent(*_):
        pass

    async def lived():
        algorithm = {"name": "fedogd", "step": 0.1}
        content = run_content(algorithm, CONTENT["problem"], gather=1)
        async with serving(nats_server.url, content) as (hub, _):
            with monkeypatch.context() as patched:
                patched.setattr(faults, "reach", at_point)
                patched.setattr(Uplink, "send", never_sent)
                async with await joined(nats_server.url, hub, "0", folder=tmp_path) as learner:
                    await learner.learn_one(x, 1.0)
                    await learner.learn_one(x, 1.0)
            assert hub.aggregator.records.received.tolist() == [0, 0]
            async with await joined(nats_server.url, hub, "0", folder=tmp_path):
                await until(lambda: hub.aggregator.records.received[0] == 2)
            return hub.aggregator.records.bytes_up[0] // hub.document.upload_bytes

    assert asyncio.run(lived()) == 2
    assert stored == [{1}, {1, 2}]
