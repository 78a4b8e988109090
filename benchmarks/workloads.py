"""Workloads: the simulations that the benchmarks time; data are drawn before the clock starts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import mainstem as ms
from mainstem import parts
from mainstem.base import Algorithm, Problem, Stream


class Workload(NamedTuple):
    """A problem and a stream, and the algorithms that are timed on them."""

    problem: Problem
    stream: Stream
    algorithms: dict[str, Algorithm]
    steps: int
    data: tuple[Any, ...] = ()  # the same samples, for peers
    plan: Any = None  # OFedIQ's parameters

    def run(self, name: str, **arguments: Any) -> Callable[[], object]:
        """A function that simulates the algorithm of that name."""
        return lambda: ms.simulate(
            self.algorithms[name], self.problem, self.stream, **{"steps": self.steps} | arguments
        )


def fedomd() -> Workload:
    """FedOMD's experiment."""
    algorithm = ms.fedomd(
        parts.inverse_time(2.0), mirror=parts.euclidean(parts.box(-3, 3)), sync=parts.every(20)
    )
    problem, stream = ms.problems.quadratic(low=-3, high=3), ms.streams.alternating(20)
    return Workload(problem, stream, {"fedomd": algorithm}, 100_000)


def mlp() -> Workload:
    """The 4,609-parameter perceptron at 1,000 clients."""
    draw = np.random.default_rng(0)
    features = draw.uniform(size=(9000, 5)).astype(np.float32)
    target = draw.uniform(size=9000).astype(np.float32)
    stream = ms.streams.arrays(features, target, 1000)
    return _gradients(ms.problems.mlp(5), 4609, stream, (features, target), steps=100)


def cnn() -> Workload:
    """The 34,826-parameter convolutional network at 1,000 clients."""
    draw = np.random.default_rng(0)
    images = draw.uniform(size=(5000, 28, 28)).astype(np.float32)
    labels = draw.integers(0, 10, 5000).astype(np.int32)
    stream = ms.streams.arrays(images, labels, 1000)
    return _gradients(ms.problems.cnn(), 34_826, stream, (images, labels), steps=3)


def fedres(clients: int = 50, steps: int = 500, scale: float = 0.1) -> Workload:
    """FedRes.SGD with AdaGrad on pendigits."""
    stream = ms.streams.tasks("pendigits", clients)
    problem = ms.problems.personal(8, 8, classes=2, intercept=True)
    return Workload(problem, stream, {"fedres": ms.fedres_sgd(parts.adagrad(scale))}, steps)


def _gradients(
    problem: Problem, parameters: int, stream: Stream, arrays: tuple[Any, Any], steps: int
) -> Workload:
    """FedOGD, and OFedIQ planned for 1 % of the uplink. Old commits do not know `problem.parameters`."""
    plan = ms.plan(0.01, parameters)
    ofediq = ms.ofediq(0.01, rate=plan.rate, levels=plan.levels, blocks=plan.blocks)
    data = *arrays, stream.places(0, 1, steps).astype(np.int64), 0.01
    algorithms = {"fedogd": ms.fedogd(0.01), "ofediq": ofediq}
    return Workload(problem, stream, algorithms, steps, data, plan)
