"""The jointly best models in hindsight: one shared part for all clients, and one own part per client.

The comparator of Agarwal et al. 2020, eq. (1). Values are sums over steps of means over clients, each
client's losses times its weight. Quadratic losses are summed client by client and the own parts are
eliminated, so the cost is linear in the number of clients. Other losses are minimised with a
certificate, each part in a ball.
"""

import copy
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random, replay
from mainstem.base import Domain, Flat, Form, cast
from mainstem.errors import BadData
from mainstem.measure.certificate import EPS, Solution
from mainstem.measure.quadratic_sums import SPARE
from mainstem.measure.question import Hindsight, Question, solved
from mainstem.measure.solver import minimise
from mainstem.measure.weighted_losses import MOST, STEPS
from mainstem.parts import l2_ball
from mainstem.value import integer, positive, value

TITLE = "best shared and own models over everything"


def best_pair(question: Question, prefixes: list[int], weights: np.ndarray | None) -> Hindsight:
    """The best shared and own parts for each of the prefixes, given by their numbers of steps.

    The points are the shared parts; `best_models` returns the own parts too.
    """
    found, split = _joint(question, prefixes, weights), _split(question)
    return solved([each._replace(params=each.params[:split]) for each in found])


def best_models(question: Question, prefix: int) -> tuple[np.ndarray, np.ndarray]:
    """The best shared part for the first `prefix` steps, and the own parts [clients, ...]."""
    split, clients = _split(question), question.stream.clients
    params = _joint(question, [prefix], None)[0].params
    return params[:split], params[split:].reshape(clients, -1)


def _joint(question: Question, prefixes: list[int], weights: np.ndarray | None) -> list[Solution]:
    """The solution for each prefix, in one vector: the shared part, then the own parts."""
    if not question.problem.convex:
        raise BadData("regret: personal regret wants convex losses, to be sure of the best")
    clients = question.stream.clients
    shares = (np.ones(clients) if weights is None else weights) / clients
    quadratic, free = question.problem.form is not None, question.domain.whole
    if quadratic and free:
        return [
            _eliminated(forms, shares, _split(question), t)
            for t, forms in zip(prefixes, _sums(question, prefixes), strict=True)
        ]
    return [_searched(question, prefix, shares) for prefix in prefixes]


def _split(question: Question) -> int:
    """The number of shared parameters."""
    shapes = question.problem.shapes
    shared = shapes.shared if question.problem.personal else shapes
    return sum(leaf.size for leaf in jax.tree.leaves(shared))


# --- quadratic losses, in closed form --------------------------------------------------------------


class Sums(NamedTuple):
    """The summed forms of each client."""

    matrix: np.ndarray  # [clients, D, D]
    vector: np.ndarray  # [clients, D]
    constant: np.ndarray  # [clients]


def _sums(question: Question, prefixes: list[int]) -> list[Sums]:
    """The forms of each client, summed over the steps of each prefix."""

    def step(vectors: Flat, seen: Any, here: Any) -> Form:
        assert vectors.form is not None
        form = vectors.form(seen).times(here)
        if jnp.ndim(form.matrix) == 0:
            form = form._replace(matrix=form.matrix * jnp.eye(len(form.vector)))
        return form

    totals: list[Any] = []
    running: Any = None
    done = 0
    for prefix in prefixes:
        for forms in _replayed(question, step, done + 1, prefix):
            part = [np.sum(np.asarray(x, np.float64), axis=0) for x in forms]
            running = (
                part if running is None else [a + b for a, b in zip(running, part, strict=True)]
            )
        done = prefix
        totals.append(Sums(*running))
    return totals


def _replayed(question: Question, made: Any, first: int, last: int) -> Any:
    """`made(vectors, seen, here)` for steps `first` to `last`, [steps, clients, ...], in chunks."""
    stream, key = question.stream, jnp.asarray(random.root(question.seed))
    precise = partial(jax.enable_x64, True)  # not active across a yield
    with precise():
        problem, ks = cast(question.problem, "float64"), jnp.arange(stream.clients)
        vectors = Flat(problem)

    def step(sampler: Any, drawn: Any, pieces: Any, t: Any) -> Any:
        seen, here = replay.seen(problem, sampler, key, drawn, pieces, t, ks)
        return jax.vmap(lambda seen, here: made(vectors, seen, here))(seen, here)

    again = jax.jit(jax.vmap(step, in_axes=(None, None, 0, 0)))
    size = max(1, min(STEPS, 2**24 // (stream.clients * question.problem.parameters**2)))
    for begin in range(first, last + 1, size):
        end = min(begin + size - 1, last)
        with precise():
            given = replay.given(stream, question.seed, begin, end, "float64")
            forms = jax.device_get(again(*given, jnp.arange(begin, end + 1)))
        yield forms


def _eliminated(sums: Sums, shares: np.ndarray, split: int, terms: int) -> Solution:
    """The joint minimum: own parts as functions of the shared part, then the shared part.

    The certificate: a quadratic with gradient g is g'A^+g / 2 above its minimum. The remaining gradient
    and the bound on its rounding error go through the same elimination.
    """
    used = [k for k in range(len(shares)) if shares[k] > 0 and sums.matrix[k].any()]
    blocks = [_Block(sums, shares[k], k, split) for k in used]
    zero = np.zeros(split)
    matrix = sum((block.curve for block in blocks), np.zeros((split, split)))
    whole = sum((block.shared for block in blocks), np.zeros((split, split)))
    inverse = _pseudo_inverse(matrix, _largest(whole))
    shared, owns = zero, [np.zeros_like(block.aside) for block in blocks]
    for _ in range(3):  # the first iteration solves, the others refine
        slopes, reduced = _slopes(blocks, shared, owns)
        move = inverse @ reduced
        owns = [
            own - block.inverse @ (aside - block.cross.T @ move)
            for block, own, (_, aside) in zip(blocks, owns, slopes, strict=True)
        ]
        shared = shared - move
    constant = float(shares @ sums.constant)
    value = constant + sum(b.value(shared, own) for b, own in zip(blocks, owns, strict=True))
    slopes, reduced = _slopes(blocks, shared, owns)
    doubts, doubt = _slopes([b.sizes for b in blocks], abs(shared), [abs(own) for own in owns])
    ulps = (SPARE + terms + 4 * len(blocks) + matrix.size) * EPS
    gap = _above(reduced, ulps * doubt, inverse)
    size = abs(constant)
    for block, own, (_, left), (_, most) in zip(blocks, owns, slopes, doubts, strict=True):
        gap += _above(left, ulps * most, block.inverse)
        size += block.sizes.value(abs(shared), abs(own))
    gap += ulps * size
    every = np.zeros((len(shares), sums.vector.shape[1] - split))
    for k, own in zip(used, owns, strict=True):
        every[k] = own
    return Solution(np.concatenate([shared, every.ravel()]), value, gap, TITLE)


class _Block:
    """One client's quadratic, w'Sw/2 + w'Cv + v'Ov/2 - b'w - c'v, with its own part eliminated."""

    def __init__(self, sums: Sums, share: float, k: int, split: int):
        matrix, vector = share * sums.matrix[k], share * sums.vector[k]
        self.shared, self.cross = matrix[:split, :split], matrix[:split, split:]
        self.mine = matrix[split:, split:]
        self.linear, self.aside = vector[:split], vector[split:]
        self.inverse = _pseudo_inverse(self.mine, _largest(self.mine))
        self.turn = self.cross @ self.inverse
        self.curve = self.shared - self.turn @ self.cross.T

    @property
    def sizes(self) -> "_Block":
        """The same with every product counted as positive: rounding errors are relative to this."""
        block = copy.copy(self)
        for name in ("shared", "cross", "mine", "turn"):
            setattr(block, name, abs(getattr(self, name)))
        block.linear, block.aside, block.turn = -abs(self.linear), -abs(self.aside), -block.turn
        return block

    def value(self, shared: np.ndarray, own: np.ndarray) -> float:
        moved = 0.5 * shared @ self.shared @ shared + shared @ self.cross @ own
        return float(moved + 0.5 * own @ self.mine @ own - self.linear @ shared - self.aside @ own)

    def slope(self, shared: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ahead = self.shared @ shared + self.cross @ own - self.linear
        return ahead, self.mine @ own + self.cross.T @ shared - self.aside


def _slopes(
    blocks: Sequence[_Block], shared: np.ndarray, owns: Sequence[np.ndarray]
) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Each block's gradient, and that of the sum in the shared part with the own parts eliminated."""
    slopes = [block.slope(shared, own) for block, own in zip(blocks, owns, strict=True)]
    reduced = np.zeros_like(shared)
    for block, (ahead, aside) in zip(blocks, slopes, strict=True):
        reduced = reduced + ahead - block.turn @ aside
    return slopes, reduced


def _above(slope: np.ndarray, doubt: np.ndarray, inverse: np.ndarray) -> float:
    """A bound on a quadratic minus its minimum; `doubt` bounds the error of each entry of its gradient."""
    left = math.sqrt(max(float(slope @ inverse @ slope), 0.0))
    return 0.5 * (left + float(np.linalg.norm(doubt)) * math.sqrt(_largest(inverse))) ** 2


def _largest(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0


def _pseudo_inverse(matrix: np.ndarray, scale: float) -> np.ndarray:
    """The inverse on the range; eigenvalues at the level of rounding at this scale count as zero."""
    if matrix.size == 0:
        return matrix
    values, basis = np.linalg.eigh((matrix + matrix.T) / 2)
    curved = values > 64 * len(matrix) * EPS * scale
    return np.asarray((basis[:, curved] / values[curved]) @ basis[:, curved].T)


# --- any convex loss, each part in a ball ----------------------------------------------------------


def _searched(question: Question, prefix: int, shares: np.ndarray) -> Solution:
    """The joint minimum over products of balls, by the certified solver."""
    parts = list(_replayed(question, lambda vectors, seen, here: (seen, here), 1, prefix))
    seen, here = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    if sum(np.asarray(x).nbytes for x in jax.tree.leaves(seen)) > MOST:
        raise BadData("regret: the samples do not fit in memory: ask for a shorter prefix")
    clients, split, size = len(shares), _split(question), question.problem.parameters
    domain = question.domain
    radius = question.radius if domain.whole or domain.reach is None else float(domain.reach)
    if domain.reach is None:
        raise BadData("regret: personal regret is over everything or an l2 ball for each model")

    with jax.enable_x64(True):
        vectors = Flat(question.problem)
        seen, factors = cast(seen, "float64"), jnp.asarray(here * shares, jnp.float64)

        def total(params: Any) -> Any:
            owns = params[split:].reshape(clients, size - split)

            def one(own: Any, seen: Any) -> Any:
                return vectors.loss(jnp.concatenate([params[:split], own]), seen)

            losses = jax.vmap(jax.vmap(one), (None, 0))(owns, seen)
            return jnp.sum(jnp.where(factors > 0, factors * losses, 0)) / prefix

        slope = jax.jit(jax.value_and_grad(total))

        def at(params: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = slope(params)
            return float(value), np.asarray(gradient, np.float64)

        found = minimise(
            at, np.zeros(split + clients * (size - split)), Balls(radius, split, clients)
        )
    return found.times(prefix)


@value
class Balls(Domain):
    """Balls of the same radius: one for the shared part, and one for the own part of each client."""

    radius: float = positive()
    split: int = integer(least=0)
    clients: int = integer(least=1)

    @property
    def title(self) -> str:
        return f"l2 balls of radius {self.radius:g}, for the shared and each own model"

    def _parts(self, vector: Any) -> list[Any]:
        return [vector[: self.split], *vector[self.split :].reshape(self.clients, -1)]

    def project(self, params: Any) -> Any:
        ball = l2_ball(self.radius)
        return jnp.concatenate([ball.project(part) for part in self._parts(params)])

    def support(self, gradient: Any) -> Any:
        return self.radius * sum(np.linalg.norm(part) for part in self._parts(gradient))
