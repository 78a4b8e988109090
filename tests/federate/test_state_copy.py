"""The copy of the hub's state in its folder: which of two states is later, and what a damaged one does."""

import asyncio

import numpy as np
import pytest

from mainstem.engines.federate.hub.state_copy import StateCopy, later
from mainstem.engines.federate.protocol.state_format import pack
from mainstem.engines.federate.transport.state_store import StoredState
from mainstem.errors import BrokenRun
from tests.federate.in_process import joined, run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}


def state(epoch, version, data=b""):
    return StoredState(epoch, version, data)


@pytest.mark.parametrize(
    ("server", "folder", "wanted"),
    [
        (None, None, None),
        (state(1, 3), None, "server"),
        (None, state(1, 3), "folder"),
        (state(1, 3), state(1, 3), "server"),
        (state(1, 3), state(1, 9), "folder"),
        (state(1, 9), state(1, 3), "server"),
        (state(2, 9), state(1, 9), "server"),
        (state(1, 3), state(2, 9), "folder"),
    ],
)
def test_the_later_of_two(server, folder, wanted):
    found = later(server, folder, "r")
    assert found is {None: None, "server": server, "folder": folder}[wanted]


@pytest.mark.parametrize(("server", "folder"), [((2, 3), (1, 9)), ((1, 9), (2, 3))])
def test_histories_that_have_parted_need_a_decision(server, folder):
    with pytest.raises(
        BrokenRun, match=r"move the file r\.state away; .* delete the bucket ms-r-hub"
    ):
        later(state(*server), state(*folder), "r")


def test_a_damaged_copy_is_left_alone(tmp_path, caplog):
    copy, data = StateCopy(tmp_path, "r"), pack({"epoch": 4, "version": 2}, {})
    assert copy.read() is None
    copy.note(data)
    copy.write()
    assert copy.read() == state(4, 2, data)
    (tmp_path / "r.state").write_bytes(data[:-3])
    assert copy.read() is None
    assert "is damaged" in caplog.text


def test_a_full_disk_is_reported_once_and_survived(tmp_path, caplog):
    copy = StateCopy(tmp_path / "missing", "r")
    copy.note(b"state")
    for _ in range(3):
        copy.write()
    assert caplog.text.count("cannot be written") == 1
    (tmp_path / "missing").mkdir()
    copy.write()
    assert (tmp_path / "missing" / "r.state").read_bytes() == b"state"
    assert caplog.text.count("is written again") == 1


def test_a_hub_at_work_writes_it_soon_after_a_merge(nats_server, tmp_path):
    async def lived():
        content = run_content({"name": "fedogd", "step": 0.1}, LINEAR, clients=1)
        async with (
            serving(nats_server.url, content, folder=tmp_path) as (hub, _),
            await joined(nats_server.url, hub, "0") as client,
        ):
            copy = StateCopy(tmp_path, hub.document.rules.run)
            assert copy.read().version == 0
            await client.learn_one(np.ones(2, np.float32), 1.0)
            await until(lambda: copy.read().version == 1)
            assert copy.read().age == (hub.aggregator.epoch, hub.aggregator.version)

    asyncio.run(lived())
