"""Messages that break a rule, against a live hub: none changes its state, every one is counted."""

import asyncio
import dataclasses
import random as chance
from pathlib import Path

import jax
import numpy as np
import pytest

import mainstem as ms
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.protocol.messages import (
    Reason,
    Refused,
    Upload,
    client_id,
    pack_upload,
)
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.transport import connection as connections
from mainstem.engines.federate.transport import streams
from mainstem.replay import samples_at
from tests.federate.in_process import joined, run_content, serving, until

FEW = 300  # of each kind
# Reasons that other tests have:
OTHERS = {Reason.STALE, Reason.QUARANTINED, Reason.OVERSIZED, Reason.PENDING, Reason.CHUNK}
FEDOGD = {"name": "fedogd", "step": 0.1}
DIGITS = ms.streams.digits(clients=2)


@dataclasses.dataclass
class Attack:
    """Messages that differ from the upload of client 0 that is due."""

    honest: Upload
    draw: chance.Random

    def packed(self, **changes):
        return pack_upload(self.honest._replace(**changes))

    def noise(self):
        return self.draw.randbytes(self.draw.randrange(300))

    def bit(self):
        data = bytearray(self.packed())
        position = self.draw.randrange(8 * len(data))
        data[position // 8] ^= 1 << position % 8
        return bytes(data)

    def short(self):
        return self.packed()[: self.draw.randrange(len(self.packed()))]

    def long(self):
        return self.packed() + self.draw.randbytes(
            self.draw.randrange(1, 1000)
        )  # the server refuses more

    def run(self):
        return self.packed(run=self.draw.randbytes(8))

    def protocol(self):
        data = bytearray(self.packed())
        data[4] ^= 0xFF
        return bytes(data)

    def session(self):
        return self.packed(session=self.draw.randrange(2**40))

    def epoch(self):
        return self.packed(epoch=self.draw.randrange(2**62))

    def client(self):
        return self.packed(client=self.draw.randrange(1, 2**32))

    def codec(self):
        return self.packed(codec=self.draw.randbytes(4))

    def shape(self):
        length = self.draw.choice([0, 8, len(self.honest.body) - 8])
        return self.packed(body=self.draw.randbytes(length))

    def round(self):
        return self.packed(step=self.draw.randrange(2**20, 2**62))

    def replayed(self):
        return self.packed(step=0)

    def version(self):
        """At a step that no honest upload can have taken already."""
        return self.packed(step=2**40, version=self.draw.randrange(2**20, 2**62))

    def weight(self):
        return self.packed(weight=self.draw.choice([float("nan"), float("inf"), -1.0, 0.0]))

    def heavy(self):
        return self.packed(weight=self.draw.choice([1.01, 2.0, 1e9, 1e300]))

    def loss(self):
        return self.packed(loss=self.draw.choice([float("nan"), float("inf"), 1e308, -1e200]))

    def body(self):
        numbers = np.frombuffer(self.honest.body).copy()
        numbers[self.draw.randrange(numbers.size)] = self.draw.choice([np.nan, np.inf, -np.inf])
        return self.packed(body=numbers.tobytes())

    def piece(self):
        return b"mspc" + self.draw.randbytes(12 + self.draw.randrange(100))


KINDS = [
    name
    for name in vars(Attack)
    if not name.startswith("_") and name not in ("packed", "honest", "draw")
]


async def attacked(url, each):
    """`each` messages of every kind in the name of client 0, while both clients learn in lockstep."""
    content = run_content(FEDOGD, pace="lockstep", strikes=10**9, dtype="float64")
    async with serving(url, content) as (hub, _):
        over = asyncio.Event()
        learning = [asyncio.create_task(honest(url, hub, k, over)) for k in range(2)]
        memory = await send_attacks(url, hub, each)
        over.set()
        steps = [await each for each in learning]
        return dict(hub.aggregator.records.refused[0]), memory, steps, hub.aggregator.model


async def honest(url, hub, k, over):
    """Learns until it is over, with the other client; returns the last step."""
    async with await joined(url, hub, str(k)) as learner:
        for sample in samples_at(DIGITS, 0, k, 1, 10**6, "float64"):
            await learner.step_with(sample)
            if over.is_set() and learner.step % 50 == 0:
                break
        return learner.step


async def send_attacks(url, hub, each):
    """Sends it all, never more than the NATS server stores; returns the memory after each kind, in MB."""
    document, memory, sent = hub.document, [], 0
    body = np.ones(document.message).tobytes()
    ours = document.digest, document.codec
    upload = Upload(
        *ours, client_id(document.clients[0]), 1, 0, 1.0, 1.0, body, hub.aggregator.epoch
    )
    attack = Attack(upload, chance.Random(0))
    raw = await connections.connect(url)
    for kind in KINDS:
        for _ in range(each):
            attack.honest = upload._replace(
                step=hub.aggregator.due,
                version=hub.aggregator.version,
                session=int(hub.aggregator.records.sessions[0]),
            )
            await raw.publish(document.subjects.upload("0"), getattr(attack, kind)())
            sent += 1
            if sent % 32 == 0:
                await until(lambda: hub.aggregator.records.refused[0].total() == sent)  # noqa: B023
        memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6)
    await until(lambda: hub.aggregator.records.refused[0].total() == sent)
    await raw.close()
    return memory


def endured(url, each):
    """All are counted, and the honest clients' model is that of the simulation, which nobody attacks."""
    found, memory, steps, params = asyncio.run(attacked(url, each))
    assert sum(found.values()) == each * len(KINDS)
    assert set(Reason) - OTHERS <= set(found), found
    assert steps[0] == steps[1] > 0
    problem = ms.problems.softmax(64, 10)
    algorithm = ms.guarded(ms.fedogd(step=0.1))
    run = ms.simulate(algorithm, problem, DIGITS, steps=steps[0], dtype="float64", measure=())
    model = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(run.model)])
    assert abs(params - model).max() < 1e-9
    print(f"{found}, {steps[0]} honest steps, MB after each kind: {[round(x) for x in memory]}")
    return memory


@pytest.fixture(autouse=True)
def much_room(monkeypatch):
    """The server takes as many uploads of one client as the hub can read: here they are counted."""
    monkeypatch.setattr(streams, "LEAST_ROOM", 10**6)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_body_that_is_not_finite_is_refused(wrong):
    made = Aggregator(parse(run_content(FEDOGD, gather=1, dtype="float64")))
    body = np.ones(made.document.message)
    body[-1] = wrong
    ours = made.document.digest, made.document.codec, client_id("0")
    data = pack_upload(Upload(*ours, 1, 0, 1.0, 1.0, body.tobytes()))
    with pytest.raises(Refused, match="not finite"):
        made.accept("0", data, 1)


def test_every_kind_is_refused_and_counted(nats_server):
    endured(nats_server.url, FEW)


@pytest.mark.slow
def test_two_hundred_thousand(nats_server):
    memory = endured(nats_server.url, -(-200_000 // len(KINDS)))
    assert memory[-1] - memory[2] < 20, memory
