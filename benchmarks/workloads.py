"""Workloads: the simulations that the benchmarks time; data are drawn before the clock starts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from optax import losses

import mainstem as ms
from benchmarks.peers import jax_fedavg
from mainstem import parts
from mainstem.base import Algorithm, Problem, Stream
from mainstem.problems.convolution import convolve


class Workload(NamedTuple):
    """A problem and a stream, and the algorithms that are timed on them."""

    problem: Problem
    stream: Stream
    algorithms: dict[str, Algorithm]
    steps: int
    data: tuple[Any, ...] = ()  # the same samples, for peers
    plan: Any = None  # OFedIQ's parameters

    def run(self, name: str, **arguments: Any) -> Callable[[], Any]:
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


def mlp(clients: int = 1000, steps: int = 100) -> Workload:
    """The 4,609-parameter perceptron."""
    draw = np.random.default_rng(0)
    features = draw.uniform(size=(9000, 5)).astype(np.float32)
    target = draw.uniform(size=9000).astype(np.float32)
    stream = ms.streams.arrays(features, target, clients)
    return _gradients(ms.problems.mlp(5), 4609, stream, (features, target), steps)


def cnn(clients: int = 1000, steps: int = 3, **named: str) -> Workload:
    """The 34,826-parameter convolutional network; `named` are fields of the problem."""
    draw = np.random.default_rng(0)
    images = draw.uniform(size=(5000, 28, 28)).astype(np.float32)
    labels = draw.integers(0, 10, 5000).astype(np.int32)
    stream = ms.streams.arrays(images, labels, clients)
    return _gradients(ms.problems.cnn(**named), 34_826, stream, (images, labels), steps)


def grid(clients: int = 20, steps: int = 300) -> Callable[[], Any]:
    """A function that sweeps 20 steps with 10 seeds on digits."""
    stream, problem = ms.streams.digits(clients), ms.problems.softmax(64, 10)
    points = {"step": np.geomspace(0.01, 10, 20).tolist()}

    def make(step: float) -> tuple[Algorithm, Problem]:
        return ms.fedogd(step), problem

    return lambda: ms.sweep(make, points, stream, steps=steps, seeds=10)


def rows(clients: int, steps: int, features: int = 10, count: int | None = None) -> Workload:
    """Logistic regression on rows of a table, as many rows as clients unless `count` is given."""
    draw = np.random.default_rng(0)
    table = draw.standard_normal((count or clients, features), dtype=np.float32)
    labels = (table[:, 0] + table[:, 1] > 0).astype(np.int32)
    stream = ms.streams.arrays(table, labels, clients)
    algorithms = {"fedogd": ms.fedogd(0.5)}
    return Workload(ms.problems.logistic(features), stream, algorithms, steps, (table, labels))


def cifar(users: int = 50, images: int = 50, batch: int = 10, steps: int = 10) -> Workload:
    """A cohort of pfl-research's CIFAR10 benchmark, with generated images: one local epoch in batches a round."""
    draw = np.random.default_rng(0)
    x = draw.uniform(size=(users, images, 32, 32, 3)).astype(np.float32)
    y = draw.integers(0, 10, (users, images)).astype(np.int32)
    own = ms.streams.arrays(
        x.reshape(-1, 32, 32, 3), y.ravel(), users, deal=ms.streams.in_time(ends="repeat")
    )
    problem = ms.problems.custom(
        lambda key: jax_fedavg.initial(),
        lambda params, x: jax_fedavg.scores(params, x[None], convolve)[0],
        losses.softmax_cross_entropy_with_integer_labels,
        classes=10,
    )
    fedavg = ms.dynamic_fedavg(0.01, epochs=images // batch, batch=batch, normalised=False)
    algorithms = {"dynamic_fedavg": fedavg}
    stream = ms.streams.in_batches(own, images)
    return Workload(ms.problems.batched(problem), stream, algorithms, steps, (x, y))


def elec2(clients: int, steps: int) -> Workload:
    """Logistic regression on elec2: consecutive rows of each client, repeated."""
    stream = ms.streams.dataset("elec2", clients, deal=ms.streams.in_time(ends="repeat"))
    table = stream.table
    algorithms = {"fedogd": ms.fedogd(0.1), "independent": ms.independent(0.1)}
    problem = ms.problems.logistic(table.features.shape[1])
    return Workload(problem, stream, algorithms, steps, (table.features, table.target))


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
    dealt = stream.places if hasattr(stream, "places") else stream.chunk  # of older commits
    data = *arrays, dealt(0, 1, steps).astype(np.int64), 0.01
    algorithms = {"fedogd": ms.fedogd(0.01), "ofediq": ofediq}
    return Workload(problem, stream, algorithms, steps, data, plan)
