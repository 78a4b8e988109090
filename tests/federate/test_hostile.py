"""Messages that break a rule, against a live hub: none changes its state, every one is counted."""

import asyncio
import dataclasses
import random as chance

import numpy as np
import pytest

from mainstem.engines.federate import broker as brokers
from mainstem.engines.federate.wire import Reason, Upload, pack_upload
from tests.federate.together import document, serving, until

FEW = 500  # of each kind


@dataclasses.dataclass
class Attack:
    """Something that is not an upload of client 0 for step 1."""

    honest: Upload
    draw: chance.Random

    def packed(self, **changes):
        return pack_upload(self.honest._replace(**changes))

    def noise(self):
        return self.draw.randbytes(self.draw.randrange(300))

    def bit(self):
        data = bytearray(self.packed())
        place = self.draw.randrange(8 * len(data))
        data[place // 8] ^= 1 << place % 8
        return bytes(data)

    def short(self):
        return self.packed()[: self.draw.randrange(len(self.packed()))]

    def long(self):
        return self.packed() + self.draw.randbytes(self.draw.randrange(1, 3000))

    def run(self):
        return self.packed(run=self.draw.randbytes(8))

    def client(self):
        return self.packed(client=self.draw.randrange(1, 2**32))

    def codec(self):
        return self.packed(codec=self.draw.randbytes(4))

    def shape(self):
        length = self.draw.choice([0, 4, len(self.honest.body) - 4])
        return self.packed(body=self.draw.randbytes(length))

    def round(self):
        return self.packed(step=self.draw.randrange(2, 2**62))

    def replayed(self):
        return self.packed(step=0)

    def version(self):
        return self.packed(version=self.draw.randrange(1, 2**62))

    def weight(self):
        return self.packed(weight=self.draw.choice([float("nan"), float("inf"), -1.0, 0.0]))

    def body(self):
        numbers = np.frombuffer(self.honest.body, np.float32).copy()
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
    rules = {"pace": "lockstep", "strikes": 10**9, "steps": 10}
    async with serving(url, document({"name": "fedogd", "step": 0.1}, **rules)) as (hub, _):
        charter = hub.charter
        body = np.ones(charter.message, np.float32).tobytes()
        honest = Upload(charter.digest, charter.codec, 0, 1, 0, 1.0, 1.0, body)
        attack = Attack(honest, chance.Random(0))
        before = hub.table.stored(0)
        raw = await brokers.connect(url)
        sent = 0
        for kind in KINDS:
            for _ in range(each):
                await raw.publish(charter.names.up("0"), getattr(attack, kind)())
                sent += 1
                if sent % 32 == 0:
                    await until(lambda: hub.table.refused[0].total() == sent)  # noqa: B023
        await until(lambda: hub.table.refused[0].total() == sent)
        found = dict(hub.table.refused[0])
        hub.table.refused[0].clear()
        hub.table.strikes[:] = 0
        assert hub.table.stored(0) == before
        assert not hub.table.waiting
        await raw.close()
    return found


def test_every_kind_is_refused_and_counted(broker):
    found = asyncio.run(attacked(broker.url, FEW))
    assert sum(found.values()) == FEW * len(KINDS)
    expected = set(Reason) - {Reason.STALE, Reason.QUARANTINED, Reason.OVERSIZED}
    assert expected <= set(found), found


@pytest.mark.slow
def test_two_hundred_thousand(broker):
    found = asyncio.run(attacked(broker.url, -(-200_000 // len(KINDS))))
    assert sum(found.values()) >= 200_000
