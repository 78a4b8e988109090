"""Hubs that are suspended while another takes their run over: one hub at a time, and the newest state is kept.

The state is larger than a message of the server, so it is stored in pieces. A hub is stopped at any instant, also
between two pieces, and woken up when its successor is at work.
"""

import asyncio
import random
import signal
import time

import pytest

from mainstem.engines.federate import control
from mainstem.engines.federate.hub.model_file import MODEL, read_model
from mainstem.engines.federate.protocol.run_document import parse
from tests.federate.clusters import STORED, Server, ports
from tests.federate.test_kills import small

pytestmark = pytest.mark.slow  # real processes

TIMES = 20
SMALL_MESSAGES = STORED.replace("8MB", "5KB")  # the state has 6 kB


def test_twenty_hubs_in_turn(processes, tmp_path):
    server = Server(tmp_path / "server", "one", *ports(1), SMALL_MESSAGES)
    made, draw = processes(small(steps=10**6)), random.Random(0)

    def started(n):
        return made.hub("--url", server.url, "--folder", str(tmp_path / f"hub-{n}"))

    try:
        hub = started(0)
        clients = [made.client(str(k)) for k in range(2)]
        made.reached(1)
        for n in range(1, TIMES + 1):
            made.reached(made.step() + 10)
            time.sleep(draw.uniform(0, 0.05))
            hub.send_signal(signal.SIGSTOP)
            step, newer = made.step(), started(n)
            made.reached(step + 10)
            hub.send_signal(signal.SIGCONT)
            assert hub.wait(30) == 1
            assert newer.poll() is None
            hub = newer
        taken = (made.folder / "hub.log").read_text().count("another hub has taken this run over")
        assert taken == TIMES
        asyncio.run(control.send_order(server.url, made.rules["run"], "finish"))
        assert hub.wait(30) == 0
        assert all(client.poll() is None for client in clients)
        made.rules["steps"] = made.step()
        found = read_model(tmp_path / f"hub-{TIMES}" / MODEL, parse(made.document))
        assert abs(found - made.simulated()).max() < 1e-9  # as if there was one hub
    finally:
        server.kill()
