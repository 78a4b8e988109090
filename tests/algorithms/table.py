"""Worlds given by arrays of numbers, so that a plain loop and the simulator use the same samples."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import mainstem as ms
from mainstem.base import At, Problem, Sample, Stream
from mainstem.value import leaf, value


@value
class tabled(Stream):
    """Samples from tables: `tables` are (shown, hidden) and perhaps the counts of real samples, all [T, K, ...].

    The numbers are leaves, so that tests on tables of one shape share a program.
    """

    tables: Any = leaf()

    @property
    def clients(self) -> int:
        return jax.tree.leaves(self.tables)[0].shape[1]

    @property
    def steps(self) -> int:
        return len(jax.tree.leaves(self.tables)[0])

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        return Sample(*jax.tree.map(lambda x: jnp.asarray(x)[at.t - 1, at.k], self.tables))


class Table(NamedTuple):
    """Regression samples x[t, k], y[t, k] with ridge: gradients by hand."""

    x: np.ndarray
    y: np.ndarray
    ridge: float

    def gradient(self, w: np.ndarray, k: int, t: int) -> np.ndarray:
        x, y = self.x[t - 1, k], self.y[t - 1, k]
        return (x @ w - y) * x + self.ridge * w

    def loss(self, w: np.ndarray, k: int, t: int) -> float:
        x, y = self.x[t - 1, k], self.y[t - 1, k]
        return 0.5 * (x @ w - y) ** 2 + 0.5 * self.ridge * w @ w

    @property
    def problem(self) -> Problem:
        return ms.problems.linear(self.x.shape[2], ridge=self.ridge, intercept=False)

    @property
    def stream(self) -> Stream:
        return tabled((self.x, self.y))


class Losses(NamedTuple):
    """Raw losses given by vectors a[t, k]: quadratic |w - a|^2 / 2, or linear <w, a>."""

    a: np.ndarray
    linear: bool

    def gradient(self, w: np.ndarray, k: int, t: int) -> np.ndarray:
        a = self.a[t - 1, k]
        return a if self.linear else w - a

    def loss(self, w: np.ndarray, k: int, t: int) -> float:
        a = self.a[t - 1, k]
        return float(w @ a) if self.linear else 0.5 * float((w - a) @ (w - a))

    def problem(self, **box: float) -> Problem:
        size = self.a.shape[2]
        return ms.problems.experts(size) if self.linear else ms.problems.quadratic(size, **box)

    @property
    def stream(self) -> Stream:
        return tabled(((), self.a))


def regression(T: int, K: int, D: int, seed: int = 0) -> Table:
    draw = np.random.default_rng(seed)
    return Table(draw.normal(size=(T, K, D)), draw.normal(size=(T, K)), ridge=0.1)


def losses(T: int, K: int, D: int, *, linear: bool = False, seed: int = 0) -> Losses:
    draw = np.random.default_rng(seed)
    return Losses(draw.normal(1.0, 2.0, size=(T, K, D)), linear)


def mean_losses(models: np.ndarray, loss: Any) -> np.ndarray:
    """The mean over clients of each client's own loss, step by step."""
    T, K, _ = models.shape
    return np.array([np.mean([loss(models[t, k], k, t + 1) for k in range(K)]) for t in range(T)])


def agrees(run: ms.Run, reference: dict[str, np.ndarray], loss: Any) -> None:
    """The run's losses at every step and its last server model are the loop's, to 1e-10."""
    assert np.allclose(run.loss, mean_losses(reference["models"], loss), rtol=0, atol=1e-10)
    assert np.allclose(np.ravel(run.model), reference["server"][-1], rtol=0, atol=1e-10)
