"""Large models, many clients, and one that stalls."""

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from mainstem.engines.federate.control import send_order
from mainstem.engines.federate.protocol.messages import read_broadcast
from mainstem.engines.federate.protocol.subjects import Subjects
from mainstem.engines.federate.transport import connection as connections
from tests.federate.many_clients import sample

pytestmark = pytest.mark.slow  # real processes, some of them large

STEP = 0.5
GIGABYTE = 1e9


def content(features, **rules):
    """A run that learns a linear model from the samples of `crowd`."""
    return {
        "problem": {"name": "linear", "features": features, "intercept": False},
        "algorithm": {"name": "fedogd", "step": STEP},
        "federate": {"run": "scale", **rules},
    }


def crowd(made, first, count, rounds, pause=0.0):
    """A process with some of the clients, and its own log."""
    words = map(str, (first, count, rounds, pause))
    return made.start(
        *("tests.federate.many_clients", made.url, "scale", *words), log=f"crowd-{first}.log"
    )


def event_times(made, first):
    """The times of the events that a crowd has printed; its log has warnings too."""
    lines = (made.folder / f"crowd-{first}.log").read_text().splitlines()
    found: dict[str, float] = {}
    for line in lines:
        if line.startswith("{"):
            found |= json.loads(line)
    return found


# --- a large model ---------------------------------------------------------------------------------


def expected(features, clients, rounds):
    """The same run in NumPy: w <- w - step / K sum of the gradients of (x w - 1)^2 / 2."""
    model = np.zeros(features, np.float32)
    for t in range(1, rounds + 1):
        shown = [sample(k, t, features).shown for k in range(clients)]
        slopes = [np.float32(x @ model) - np.float32(1) for x in shown]
        for x, slope in zip(shown, slopes, strict=True):
            model = model - np.float32(STEP / clients) * slope * x
    return model


def most_memory(process: subprocess.Popen) -> int:
    """The most bytes that a process has held so far; 0 when it is gone."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s*(\d+) kB", status)
        return int(found[1]) * 1024 if found else 0
    return 0


def test_a_model_of_twenty_million_numbers_crosses_and_learns(processes):
    features, clients, rounds = 20_000_000, 2, 4
    made = processes(content(features, clients=clients, pace="lockstep", steps=rounds))
    hub = made.hub()
    crowds = [crowd(made, k, 1, rounds) for k in range(clients)]
    memory, end = 0, time.monotonic() + 300
    while hub.poll() is None:
        assert time.monotonic() < end, "it takes too long"
        memory = max(memory, most_memory(hub))
        time.sleep(0.1)
    assert [process.wait(30) for process in crowds] == [0] * clients
    times = [event_times(made, k) for k in range(clients)]
    seconds = max(each["finished"] for each in times) - max(each["joined"] for each in times)
    print(f"{seconds / rounds:.1f} s a round, the hub {memory / GIGABYTE:.2f} GB at most")
    wanted = expected(features, clients, rounds)
    assert abs(wanted).max() > 1e-5
    np.testing.assert_allclose(made.model(), wanted, rtol=0, atol=1e-4 * abs(wanted).max())
    assert memory < 25 * 4 * features  # every upload is there some times over, and JAX itself
    assert seconds / rounds < 30


# --- many clients ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pace", ["lockstep", "free"])
def test_five_hundred_clients_join_and_learn(pace, processes):
    clients, each, rounds = 500, 125, 10
    rules = {"steps": rounds} if pace == "lockstep" else {}
    made = processes(content(20, clients=clients, pace=pace, **rules))
    hub = made.hub()
    begun = time.time()
    firsts = range(0, clients, each)
    crowds = [crowd(made, first, each, rounds, pause=0.05) for first in firsts]
    assert [process.wait(150) for process in crowds] == [0] * len(crowds)
    if pace == "free":
        asyncio.run(send_order(made.url, "scale", "finish", made.credentials))
    assert hub.wait(30) == 0
    times = [event_times(made, first) for first in firsts]
    started, joined, finished = (
        max(point[name] for point in times) - begun for name in ("started", "joined", "finished")
    )
    print(f"{pace}: imported in {started:.1f} s, joined in {joined:.1f}, done in {finished:.1f}")
    state = json.loads((made.folder / "hub" / "status.json").read_text())
    assert state["version"] >= rounds
    assert all(client["merged"] > 0 for client in state["clients"].values())
    # On a busy machine a client sends an upload again that was only late: the second one is a replay.
    refused = {reason for client in state["clients"].values() for reason in client["refused"]}
    assert refused <= {"replayed"}
    assert joined < 30


# --- one that stalls -------------------------------------------------------------------------------


class Listener:
    """Records when each broadcast came, and the newest merged step of each client."""

    def __init__(self, clients):
        self.clients = clients
        self.times = []
        self.merged = None

    async def receive(self, message):
        self.times.append(time.monotonic())
        self.merged = read_broadcast(message.data, self.clients).merged

    def longest(self, since):
        """The longest time without a broadcast, from `since` to now."""
        points = [since, *(at for at in self.times if at > since), time.monotonic()]
        return max(np.diff(points))

    async def until(self, ready, patience=60.0):
        end = time.monotonic() + patience
        while self.merged is None or not ready(self.merged):
            assert time.monotonic() < end, f"merged: {self.merged}"
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def listening(made, clients):
    listener = Listener(clients)
    connection = await connections.connect(made.url, made.credentials)
    await connection.subscribe(Subjects("scale").broadcast("*"), cb=listener.receive)
    yield listener
    await connection.close()


@pytest.mark.parametrize("pace", ["lockstep", "free"])
def test_a_stalled_process_delays_nobody_past_the_deadline_and_comes_back(pace, processes):
    deadline, clients, endless = 0.5, 3, 10**6
    made = processes(content(20, clients=clients, pace=pace, deadline=deadline))
    made.hub()
    crowds = [crowd(made, k, 1, endless, pause=0.02) for k in range(clients)]
    stalled = crowds[-1]

    async def lived():
        async with listening(made, clients) as listener:
            await listener.until(lambda merged: (merged > 5).all())
            stalled.send_signal(signal.SIGSTOP)
            await asyncio.sleep(1.0)  # what it had sent before is merged by then
            since, before = time.monotonic(), listener.merged
            await asyncio.sleep(6.0)
            silence, after = listener.longest(since), listener.merged
            stalled.send_signal(signal.SIGCONT)
            await listener.until(lambda merged: merged[-1] > after[-1] + 5)
            return silence, after - before

    silence, steps = asyncio.run(asyncio.wait_for(lived(), 150))
    print(f"{pace}: {silence:.2f} s between rounds at most; steps merged: {steps}")
    assert silence < deadline + 1.0
    assert steps[-1] == 0
    assert (steps[:-1] >= 5).all()
