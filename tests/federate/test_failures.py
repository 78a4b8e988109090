"""Failures are seen: background tasks that end, folders that cannot be resumed, commands that contradict."""

import asyncio
import gc
import json
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mainstem as ms
from mainstem.base import Sample
from mainstem.disk import lock
from mainstem.engines.federate.client import kernels as compiled
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.hub.process import run_hub
from mainstem.engines.federate.protocol import run_document, state_format, versions
from mainstem.engines.federate.transport import tasks
from mainstem.errors import BadData, MainstemError
from tests.federate.in_process import joined, run_content, serving, until
from tests.federate.processes import ROOT, environment

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}
X, Y = np.array([1.0, 2.0], np.float32), np.float32(1.0)


async def broken(*_):
    raise RuntimeError("it broke")


@pytest.mark.parametrize("name", ["_send_heartbeats", "_keep_up"])
def test_a_hub_whose_background_task_fails_ends_with_its_error(name, nats_server, monkeypatch):
    monkeypatch.setattr(Hub, name, broken)

    async def lived():
        async with serving(nats_server.url, run_content(FEDOGD, LINEAR)) as (_, work):
            await asyncio.wait_for(asyncio.wait([work]), 10)

    with pytest.raises(RuntimeError, match="it broke"):
        asyncio.run(lived())


def test_a_failed_task_of_a_client_is_logged(caplog):
    async def lived():
        await asyncio.wait([tasks.start(broken(), "client a: heartbeat")])

    with caplog.at_level(logging.ERROR, "mainstem"):
        asyncio.run(lived())
    assert "client a: heartbeat has failed: RuntimeError('it broke')" in caplog.text


def test_a_failed_resume_unlocks_the_folder(nats_server, tmp_path):
    async def lived():
        async with serving(nats_server.url, run_content(FEDOGD, LINEAR, gather=1)) as (hub, _):
            (tmp_path / "client.state").write_bytes(b"damaged")
            with pytest.raises(BadData, match=r"client\.state") as refused:
                await joined(nats_server.url, hub, "0", folder=tmp_path)
            lock(tmp_path).release()  # although the error, and with it the session, is still there
            assert refused.tb is not None
            (tmp_path / "client.state").unlink()
            async with await joined(nats_server.url, hub, "0", folder=tmp_path) as learner:
                await learner.learn_one(X, Y)

    asyncio.run(lived())


def test_no_environment_variable_reaches_the_federation():
    package = ROOT / "src" / "mainstem" / "engines" / "federate"
    assert not [path for path in package.rglob("*.py") if "os.environ" in path.read_text()]


def test_a_watched_status_is_one_line_of_json_each_time(nats_server):
    words = ["-m", "mainstem.cli", "status", nats_server.url, "--watch", "--json"]

    async def lived():
        async with serving(nats_server.url, run_content(FEDOGD, LINEAR)) as (hub, _):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *words,
                stdout=subprocess.PIPE,
                cwd=ROOT,
                env=environment(),
                limit=2**24,
            )
            try:
                lines = [await process.stdout.readline() for _ in range(2)]
            finally:
                process.kill()
                await process.communicate()
            return hub.document.rules.run, [json.loads(line) for line in lines]

    run, found = asyncio.run(lived())
    assert all(run in [each["run"] for each in line] for line in found)


def test_bytes_down_are_those_of_the_simulation(nats_server):
    async def lived():
        content = run_content(FEDOGD, LINEAR, pace="lockstep", steps=3)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as one,
            await joined(nats_server.url, hub, "1") as two,
        ):
            for _ in range(3):
                await asyncio.gather(one.step_with(Sample(X, Y)), two.step_with(Sample(X, Y)))
            return hub.status()["bytes_down"]

    stream = ms.streams.arrays(np.ones((6, 2)), np.ones(6), clients=2)
    run = ms.simulate(ms.fedogd(0.1), ms.problems.linear(2, intercept=False), stream, steps=3)
    assert asyncio.run(lived()) == run.downlink_bytes[-1]


def test_compiled_functions_are_freed_with_their_last_session():
    document = run_document.parse(run_content(FEDOGD, LINEAR))
    kernels = compiled.shared_kernels(document, None)
    assert compiled.shared_kernels(document, None) is kernels
    del kernels
    gc.collect()
    assert (document.digest, 0, id(None)) not in compiled._SHARED


def test_a_client_of_another_protocol_is_refused(nats_server, monkeypatch):
    real = versions.PROTOCOL

    async def lived():
        monkeypatch.setattr(versions, "PROTOCOL", real + 1)
        async with serving(nats_server.url, run_content(FEDOGD, LINEAR)) as (hub, _):
            monkeypatch.setattr(versions, "PROTOCOL", real)
            expected = rf"the hub has mainstem .* \(protocol {real + 1}\), the client .* \(protocol {real}\)"
            with pytest.raises(MainstemError, match=expected):
                await joined(nats_server.url, hub, "0")
            await until(lambda: hub.status()["alarms"])
            (alarm,) = hub.status()["alarms"]
            assert (alarm["alarm"], alarm["client"]) == ("client_version", "0")

    asyncio.run(lived())


def test_state_of_another_format_is_refused(monkeypatch):
    data = state_format.pack({"t": 1}, {})
    monkeypatch.setattr(state_format, "FORMAT", state_format.FORMAT + 1)
    with pytest.raises(BadData, match="finish the run with the version that started it"):
        state_format.unpack(data)


def test_the_folder_of_an_earlier_version_is_refused(tmp_path: Path):
    (tmp_path / "broker").mkdir()
    document = run_document.parse(run_content(FEDOGD, LINEAR))
    with pytest.raises(MainstemError, match="holds a run of an earlier version"):
        run_hub(document, tmp_path)
    assert not (tmp_path / "nats-server").exists()
