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


def world_for(algorithm: Algorithm, clients: int) -> World:
    """A world in the algorithm's domain."""
    if algorithm.domain.name == "simplex":
        return advised(clients)
    if algorithm.domain.bounds is not None:
        return targeted(clients, *algorithm.domain.bounds)
    return classified(clients)
