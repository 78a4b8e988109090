"""Many clients in one event loop: `python -m tests.federate.crowd URL RUN FIRST COUNT ROUNDS PAUSE`.

They are the clients FIRST to FIRST + COUNT - 1 of the roster, learn a line of numbers that anybody can make
again, PAUSE seconds after each other, and leave when ROUNDS merges are in. What they lived is told in JSON.
"""

import asyncio
import json
import sys
import time

import numpy as np

import mainstem as ms
from mainstem.base import Sample
from mainstem.engines.federate.learner import AsyncLearner


def sample(k: int, t: int, features: int) -> Sample:
    """What client k is given at step t: x of length about 1, and y = 1."""
    x = np.random.default_rng([k, t]).standard_normal(features, np.float32)
    return Sample(x / np.float32(features**0.5), np.float32(1.0))


async def live(learner: AsyncLearner, k: int, rounds: int, pause: float) -> None:
    """Learn, until so many merges are in."""
    (features,) = learner.charter.source.shape
    while learner.link.latest is None or learner.link.latest.version < rounds:
        await learner.step_with(sample(k, learner.step + 1, features))
        await asyncio.sleep(pause)


async def main(url: str, run: str, first: int, count: int, rounds: int, pause: float) -> None:
    mine = range(first, first + count)
    tell("started")
    joining = (ms.join_async(url, run=run, client=str(k)) for k in mine)
    learners = await asyncio.gather(*joining)
    tell("joined")
    await asyncio.gather(*(live(*each, rounds, pause) for each in zip(learners, mine, strict=True)))
    tell("finished")
    await asyncio.gather(*(learner.close() for learner in learners))


def tell(what: str) -> None:
    """That it has come to pass, and when."""
    print(json.dumps({what: time.time()}), flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    asyncio.run(main(words[0], words[1], *map(int, words[2:5]), float(words[5])))
