"""Fictitious play: the experiment of Appendix C of Agarwal, Langford and Wei 2020, which shows why not to use it.

One client. Both parts of the model start at (1, 0) and should move to (0, 1). Fifty rollouts of each rule are
one program. Some rollouts start with a loss hundreds of times the usual one, because their first samples are
nearly dependent. These rollouts alone would decide a mean, so medians are shown and claims are on logarithms.
"""

import functools
from collections.abc import Mapping

import numpy as np

import mainstem as ms
from mainstem.base import Algorithm, Problem, Stream
from mainstem.papers.runner import Runner
from mainstem.run import Run

PAPER = "Agarwal, Langford and Wei 2020"
SGD, ERM, PLAY = "FedRes.SGD", "FedRes.ERM", "fictitious play"
FIRST, BEST = (1.0, 0.0), (0.0, 1.0)
STEP = 0.1
CHOSEN = (
    "eta = 0.1: the printed 1.0 diverges.",
    "ERM is Algorithm 6 with w_t^l for the w_s^l in the server's line: as printed it gets stuck too.",
    "Where an argmin is not unique, in the first two steps, the point nearest to the current model is taken.",
    "Medians over the rollouts for the printed means, which a few rollouts with a bad start decide.",
)


@functools.cache
def rules() -> Mapping[str, Algorithm]:
    """Algorithms 5, 6 and 7."""
    return {
        SGD: ms.fedres_sgd(step=STEP),
        ERM: ms.fedres_erm(simultaneous=True),
        PLAY: ms.fictitious_play(),
    }


@functools.cache
def problem() -> Problem:
    """Squared loss of the sum of both predictions, started at the wrong pair."""
    return ms.problems.personal(shared=2, own=2, start=(FIRST, FIRST))


@functools.cache
def world() -> Stream:
    """The stream of Section C.1."""
    return ms.streams.partners()


def played(runner: Runner, rule: str, *, steps: int, seeds: int) -> Run:
    """A run of a rule."""
    chunk = {"chunk": 10} if steps < 1000 else {}  # one program for all short runs
    return runner.run(
        rules()[rule], problem(), world(), steps=steps, seeds=seeds, dtype="float64", **chunk
    )


def distance(models: np.ndarray) -> np.ndarray:
    """|w^g - (0, 1)| of models [..., 2]."""
    return np.asarray(np.linalg.norm(models - np.array(BEST), axis=-1))
