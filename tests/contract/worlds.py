"""Small worlds: a problem and a stream for every domain an algorithm may live in."""

import functools
from typing import Any, NamedTuple

import numpy as np

import mainstem as ms
from mainstem import random
from mainstem.base import Algorithm, Problem, Stream


class World(NamedTuple):
    """What an algorithm is tried on."""

    problem: Problem
    stream: Stream


@functools.cache
def classified(clients: int) -> World:
    """Nested parameters: softmax on 300 random rows of 4 features in 3 classes."""
    draw = np.random.default_rng(7)
    features = draw.normal(size=(300, 4))
    labels = np.argmax(features @ draw.normal(size=(4, 3)), axis=1).astype(np.int32)
    return World(
        ms.problems.softmax(4, 3, ridge=0.01), ms.streams.arrays(features, labels, clients)
    )


@functools.cache
def targeted(clients: int, low: float, high: float) -> World:
    """Quadratics on a box."""
    problem = ms.problems.quadratic(dimension=3, low=low, high=high)
    return World(problem, ms.streams.alternating(clients, dimension=3))


@functools.cache
def advised(clients: int) -> World:
    """Experts with random losses."""

    def sample(key: Any, t: Any, k: Any) -> Any:
        return (), random.uniform(key, (4,))

    return World(ms.problems.experts(4), ms.streams.generated(sample, clients))


@functools.cache
def shared_and_own(clients: int) -> World:
    """A shared and an own part, a constant for each, and clients that see nothing now and then."""
    problem = ms.problems.personal(3, 2, intercept=True, start=([0.1] * 4, [0.2] * 3))
    return World(problem, ms.streams.sometimes(ms.streams.residuals(clients, 3, 2), rate=0.8))


@functools.cache
def in_batches(clients: int) -> World:
    """Batches of 12 to label, around a line that walks."""
    problem = ms.problems.batched(ms.problems.logistic(2, ridge=2.0, intercept=False))
    return World(problem, ms.streams.walking(clients, holds=12, drift=0.01))


def world_for(algorithm: Algorithm, clients: int) -> World:
    """A world in the algorithm's domain, with an own part if it has use for one."""
    if algorithm.personal:
        return shared_and_own(clients)
    if algorithm.spec.arguments.get("batch") is not None:
        return in_batches(clients)
    if algorithm.domain.name == "simplex":
        return advised(clients)
    if algorithm.domain.bounds is not None:
        return targeted(clients, *algorithm.domain.bounds)
    return classified(clients)
