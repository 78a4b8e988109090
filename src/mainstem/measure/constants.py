"""Constants of the theorems, measured on a prefix of a stream.

They are exact where a closed form exists (quadratic losses, linear models). Otherwise means are estimated
with an interval, and a supremum is "at least" the largest value found, or "at most" a proven bound.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Flat, Form, Problem
from mainstem.errors import BadData
from mainstem.measure.estimate import Estimate, about, at_least, at_most, exact, mean
from mainstem.measure.geometry import steepest
from mainstem.measure.prefix import BATCH, Prefix

ROUNDS = 100  # iterations of the power method, at most
SAMPLED = 2048  # samples whose second derivatives are computed, at most
GROUPS = 20  # segments of steps whose estimates are treated as independent


# --- gradient norms -------------------------------------------------------------------------------


def lipschitz(prefix: Prefix, norm: str = "l2") -> Estimate:
    """L: the largest gradient norm of a loss on the domain, in the norm "l2" or "max".

    "max" is the dual norm of the entropy map.
    """
    check.one_of("lipschitz", "norm", norm, ("l2", "max"))
    problem, domain = prefix.problem, prefix.domain
    if problem.form is not None:
        forms: Form = prefix.each(problem.form)
        if norm == "max":
            if np.any(forms.matrix):
                raise BadData("lipschitz: the max norm is for linear losses, such as experts")
            return exact(np.max(np.abs(forms.vector)))
        return steepest(forms.matrix, forms.vector, domain, rank_one=problem.linear is not None)
    if norm == "l2" and problem.linear is not None and problem.linear.slope is not None:
        largest = problem.linear.slope * float(np.sqrt(row_squares(prefix).max()))
        if domain.whole:
            return exact(largest if problem.curvature == 0 else np.inf)
        if problem.curvature == 0:
            return at_most(largest)
    slopes = [row_gradients(prefix, at, norm).max() for at in _places(prefix)]
    return at_least(max(slopes))


def row_gradients(prefix: Prefix, at: np.ndarray, norm: str = "l2") -> np.ndarray:
    """The norm of the gradient of each distinct sample at a model."""
    return np.asarray(prefix.each(_gradient_norm(prefix.problem, norm), at))


def row_losses(prefix: Prefix, at: np.ndarray) -> np.ndarray:
    """The loss of each distinct sample at a model."""
    return np.asarray(prefix.each(_loss(prefix.problem), at))


@functools.lru_cache(maxsize=16)
def _gradient_norm(problem: Problem, norm: str) -> Callable[[Any, Any], Any]:
    vectors = Flat(problem)

    def of(seen: Any, at: Any) -> Any:
        slope = vectors.gradient(at, seen)
        return jnp.max(jnp.abs(slope)) if norm == "max" else jnp.sqrt(jnp.sum(slope**2))

    return of


@functools.lru_cache(maxsize=16)
def _loss(problem: Problem) -> Callable[[Any, Any], Any]:
    vectors = Flat(problem)
    return lambda seen, at: vectors.loss(at, seen)


def row_squares(prefix: Prefix) -> np.ndarray:
    """The squared norm of the features of each distinct sample."""
    return np.asarray(prefix.each(_square(prefix.problem)))


@functools.lru_cache(maxsize=16)
def _square(problem: Problem) -> Callable[[Any], Any]:
    assert problem.linear is not None
    features = problem.linear.features
    return lambda seen: jnp.sum(features(seen) ** 2)


def _places(prefix: Prefix) -> list[np.ndarray]:
    """The models at which to measure: the first, and for convex problems the best."""
    return [prefix.start, prefix.best.params] if prefix.problem.convex else [prefix.start]


# --- second derivatives ---------------------------------------------------------------------------


def smoothness(prefix: Prefix) -> Estimate:
    """beta: the largest second derivative of the loss of a single sample, over all models."""
    problem = prefix.problem
    if problem.linear is not None:
        return exact(problem.linear.bend * row_squares(prefix).max() + problem.curvature)
    if problem.form is not None:
        return exact(np.max(_tops(prefix.each(problem.form).matrix)))
    if problem.smooth is not None:
        return at_most(problem.smooth)
    return at_least(max(_row_tops(prefix, at) for at in _places(prefix)))


def curvature(prefix: Prefix) -> Estimate:
    """c: the smallest second derivative of any single loss; as declared, unless losses are quadratic."""
    problem = prefix.problem
    if not problem.convex:
        raise BadData("curvature: the problem is not convex")
    if problem.form is None:
        flat_out = problem.linear is not None and prefix.domain.whole
        return exact(problem.curvature) if flat_out else at_least(problem.curvature)
    matrices = prefix.each(problem.form).matrix
    lowest = matrices if matrices.ndim == 1 else np.linalg.eigvalsh(matrices)[:, 0]
    return exact(max(float(np.min(lowest)), problem.curvature))


def mean_smoothness(prefix: Prefix) -> Estimate:
    """The largest second derivative of the *mean* loss of these steps: that of a mean over many clients."""
    problem = prefix.problem
    if problem.form is not None:
        shares = prefix.rows[1]
        return exact(_tops(_mean(shares, prefix.each(problem.form).matrix)))
    found = max(_top(prefix, at) for at in _places(prefix))
    return at_least(found) if len(prefix.rows[1]) <= SAMPLED else about(found)


def mean_curvature(prefix: Prefix) -> Estimate:
    """The smallest second derivative of the mean loss of these steps."""
    problem = prefix.problem
    if problem.form is None:
        return curvature(prefix)
    matrix = _mean(prefix.rows[1], prefix.each(problem.form).matrix)
    return exact(matrix if np.ndim(matrix) == 0 else np.linalg.eigvalsh(matrix)[0])


def sample_smoothness(prefix: Prefix) -> Estimate:
    r"""Smoothness of single losses where the mean is curved: :math:`\lambda_{max}(E H^2) / \lambda_{max}(E H)`.

    It, and not the smoothness of the mean loss, determines the step above which gradients of single
    samples are unstable. Measured at the first model, on some of the samples.
    """
    at = prefix.start
    twice, once = _top(prefix, at, twice=True), _top(prefix, at)
    return about(twice / once if once > 0 else 0.0)


def _tops(matrices: Any) -> Any:
    """The largest eigenvalue of each matrix."""
    matrices = np.asarray(matrices)
    return matrices if matrices.ndim < 2 else np.linalg.eigvalsh(matrices)[..., -1]


def _mean(shares: np.ndarray, parts: np.ndarray) -> Any:
    return np.tensordot(shares, parts, axes=1)


def _top(prefix: Prefix, at: np.ndarray, twice: bool = False) -> float:
    """The largest eigenvalue of the mean of H (or of H H) over the samples, by the power method."""
    seen, shares = _some(prefix, SAMPLED)
    product = _mean_product(prefix.problem, twice)
    v, found = np.random.default_rng(0).normal(size=prefix.problem.parameters), 0.0
    with jax.enable_x64(True):
        for _ in range(ROUNDS):
            v = v / np.linalg.norm(v)
            moved = np.asarray(product(at, seen, shares, v))
            before, found = found, float(v @ moved)
            v = moved
            if not np.any(v) or abs(found - before) <= 1e-4 * abs(found):
                break
    return abs(found)


def _some(prefix: Prefix, most: int) -> tuple[Any, np.ndarray]:
    """At most `most` of the distinct samples, and their shares."""
    seen, shares = prefix.rows
    some = np.arange(len(shares))
    if len(some) > most:
        some = np.sort(np.random.default_rng(0).choice(len(some), most, replace=False))
    with jax.enable_x64(True):
        return jax.tree.map(lambda x: x[some], seen), shares[some] / shares[some].sum()


@functools.lru_cache(maxsize=16)
def _mean_product(problem: Problem, twice: bool) -> Any:
    """(model, samples, shares, v) -> the mean of H v, or of H H v; cached in compiled form."""
    vectors = Flat(problem)

    def product(params: Any, one: Any, v: Any) -> Any:
        return jax.jvp(lambda w: vectors.gradient(w, one), (params,), (v,))[1]

    def of(params: Any, seen: Any, shares: Any, v: Any) -> Any:
        def single(pair: Any) -> Any:
            moved = product(params, pair[0], v)
            return pair[1] * (product(params, pair[0], moved) if twice else moved)

        return jnp.sum(jax.lax.map(single, (seen, shares), batch_size=64), axis=0)

    return jax.jit(of)


def _row_tops(prefix: Prefix, at: np.ndarray) -> float:
    """The largest second derivative of the loss of a single sample, for some of them, by the power method."""
    vectors = Flat(prefix.problem)
    random_start = np.random.default_rng(0).normal(size=len(at))

    def of(one: Any) -> Any:
        def again(v: Any, _: Any) -> Any:
            moved = jax.jvp(lambda w: vectors.gradient(w, one), (params,), (v,))[1]
            size = jnp.sqrt(jnp.sum(moved**2))
            return moved / jnp.where(size > 0, size, 1), size

        v = jnp.asarray(random_start / np.linalg.norm(random_start))
        return jax.lax.scan(again, v, None, length=20)[1][-1]

    with jax.enable_x64(True):
        params = jnp.asarray(at)
        chosen, _ = _some(prefix, BATCH)
        tops = jax.jit(lambda seen: jax.lax.map(of, seen, batch_size=16))(chosen)
        return float(jnp.max(tops))


# --- the best model, and the gradients at it ------------------------------------------------------


def distance(prefix: Prefix) -> Estimate:
    """|w_1 - w*|, with w* the best fixed model of these steps (in a ball, if there is no minimiser)."""
    found = float(np.linalg.norm(prefix.best.params - prefix.start))
    return _as_sure_as_the_best(prefix, found)


def _as_sure_as_the_best(prefix: Prefix, found: float) -> Estimate:
    """An exact estimate if the best model has a closed form, otherwise an approximate one."""
    return exact(found) if prefix.problem.form is not None else about(found)


def variance(prefix: Prefix) -> Estimate:
    """sigma_diff^2 of Kwon et al. 2023, Definition 1: the mean squared gradient at the best model."""
    squares = row_gradients(prefix, prefix.best.params) ** 2
    return _as_sure_as_the_best(prefix, float(prefix.rows[1] @ squares))


def variances(prefix: Prefix, prefixes: Iterable[Any]) -> np.ndarray:
    """sigma_diff^2 for each prefix, at the best model for that prefix."""
    asked = [int(t) for t in prefixes]
    pairs = zip(prefix.shares(asked), prefix.bests(asked).points, strict=True)
    return np.array([share @ row_gradients(prefix, best) ** 2 for share, best in pairs])


class Spread(NamedTuple):
    """The variation of gradients at one model between samples, clients and steps."""

    noise: Estimate  # sigma^2 of Sahu et al. 2026, (8): around each client's own mean
    spatial: Estimate  # zeta^2, (4), at this model: of the clients' means around the common one
    crowd: Estimate  # the mean over steps of |mean gradient over clients|^2


def spread(prefix: Prefix, at: np.ndarray | None = None) -> Spread:
    """Measures the variation at the model `at` (default: the best), each value with an interval.

    Valid if each client's distribution is the same at all steps of the prefix; a drift counts as noise.
    The steps are divided into segments, and each segment gives an unbiased estimate.
    """
    w = prefix.best.params if at is None else np.asarray(at, np.float64)
    length = max(2, prefix.steps // GROUPS)
    if prefix.steps < 2 * length:
        raise BadData("spread: wants at least 4 steps")

    of, then = _scatter(prefix.problem, length)
    return Spread(*(mean(values) for values in prefix.by_stretch(of, length, then, w)))


@functools.lru_cache(maxsize=16)
def _scatter(problem: Problem, length: int) -> tuple[Any, Any]:
    """The terms that `spread` sums over a segment, and the function from the sums to the estimates."""
    vectors = Flat(problem)

    def of(seen: Any, here: Any, at: Any) -> Any:
        slopes = jax.vmap(lambda one: vectors.gradient(at, one))(seen) * here[:, None]
        crowd = jnp.sum(jnp.mean(slopes, axis=0) ** 2)
        return slopes, jnp.sum(slopes**2), here, crowd

    def then(sums: Any) -> Any:
        slopes, squares, came, crowd = sums
        seen, often = came > 0, jnp.maximum(came, 1)
        own, number = slopes / often[:, None], jnp.maximum(jnp.sum(seen), 1)
        free = jnp.maximum(jnp.sum(jnp.maximum(came - 1, 0)), 1)
        around = (squares - jnp.sum(came[:, None] * own**2)) / free
        common = jnp.sum(own, axis=0) / number
        far = jnp.where(seen, jnp.sum((own - common) ** 2, axis=1), 0)
        luck = jnp.where(seen, around / often, 0)  # what sampling adds to the squared distance
        apart = (jnp.sum(far) - (1 - 1 / number) * jnp.sum(luck)) / number
        return around, apart, crowd / length

    return of, then
