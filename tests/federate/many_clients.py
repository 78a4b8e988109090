"""Many clients in one loop: `python -m tests.federate.many_clients URL RUN FIRST COUNT ROUNDS PAUSE [ALONE]`.

They are the clients FIRST to FIRST + COUNT - 1 of the roster. They learn a linear model from reproducible samples,
with PAUSE seconds between two samples, and leave after ROUNDS merges. They print the times of these as JSON. With
ALONE, a step size, they also learn alone.
"""

import asyncio
import json
import os
import sys
import time

import numpy as np

import mainstem as ms
from mainstem.base import Sample
from mainstem.engines.federate.client.learner import AsyncLearner


def sample(k: int, t: int, features: int) -> Sample:
    """The sample of client k at step t: x of length about 1, and y = 1."""
    x = np.random.default_rng([k, t]).standard_normal(features, np.float32)
    return Sample(x / np.float32(features**0.5), np.float32(1.0))


async def live(learner: AsyncLearner, k: int, rounds: int, pause: float) -> None:
    """Learns until `rounds` merges have been received."""
    (features,) = learner.session.document.source.shape
    while learner.session.uplink.latest is None or learner.session.uplink.latest.version < rounds:
        await learner.step_with(sample(k, learner.step + 1, features))
        await asyncio.sleep(pause)


async def main(
    url: str, run: str, first: int, count: int, rounds: int, pause: float, alone: float | None
) -> None:
    mine = range(first, first + count)
    report("started")
    secret = os.environ.get("MAINSTEM_CREDENTIALS")
    given = {"run": run, "credentials": secret, "alone": alone}
    joining = (ms.join_async(url, client=str(k), **given) for k in mine)
    learners = await asyncio.gather(*joining)
    report("joined")
    await asyncio.gather(*(live(*each, rounds, pause) for each in zip(learners, mine, strict=True)))
    report("finished")
    await asyncio.gather(*(learner.close() for learner in learners))


def report(event: str) -> None:
    """Prints an event and its time."""
    print(json.dumps({event: time.time()}), flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    step = float(words[6]) if words[6:] else None
    asyncio.run(main(words[0], words[1], *map(int, words[2:5]), float(words[5]), step))
