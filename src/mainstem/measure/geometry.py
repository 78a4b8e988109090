"""Constants of domains and syncs: the largest divergence, gradient norm and period."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Domain, Mirror, Sync
from mainstem.measure.estimate import Estimate, at_most, exact


def longest_period(sync: Sync, steps: int) -> int:
    """tau of Mitra et al. 2021: the most steps from one sync (or the start) to the next (or the end).

    >>> from mainstem.parts import after_steps, every
    >>> longest_period(every(5), 12), longest_period(after_steps([1, 4, 11]), 12), longest_period(every(5), 3)
    (5, 7, 3)
    """
    check.instance("longest_period", "sync", sync, Sync, "every(5)")
    steps = check.integer("longest_period", "steps", steps, least=1)
    times = np.flatnonzero(sync.after(np.arange(1, steps + 1))) + 1
    return int(np.max(np.diff([0, *times[times < steps], steps])))


def divergence(mirror: Mirror, start: Any) -> Estimate:
    """D^2 of Mitra et al. 2021: the largest Bregman divergence from `start` to a point of the domain.

    >>> from mainstem.parts import box, entropy, euclidean
    >>> print(divergence(euclidean(box(-3, 3)), [0.0]))
    4.5 (exact)
    >>> print(divergence(entropy(), [0.25] * 4))
    1.38629 (exact)
    """
    check.instance("divergence", "mirror", mirror, Mirror, "euclidean(box(-1, 1))")
    domain, x = mirror.domain, np.asarray(start, np.float64)
    with jax.enable_x64(True):
        inside = np.allclose(domain.project(jnp.asarray(x)), x)
    if domain.bounded and not inside:
        raise check.refuse("divergence", "start", f"lie inside the {domain.title}", start)
    found = mirror.divergence(x) if domain.bounded else None
    if found is None:
        wanted = "be euclidean or entropy, on a bounded domain"
        raise check.refuse("divergence", "mirror", wanted, mirror)
    return exact(found)


def steepest(matrices: Any, vectors: Any, domain: Domain, *, rank_one: bool) -> Estimate:
    """The largest |A w - b| over quadratic losses [n] and points w of the domain.

    `rank_one`: each b is an eigenvector of its A for the largest eigenvalue.
    """
    matrices, vectors = np.asarray(matrices, np.float64), np.asarray(vectors, np.float64)
    size = vectors.shape[-1]
    scalar = matrices.ndim == 1
    if not domain.bounded:
        flat = not np.any(matrices)
        return exact(np.max(np.linalg.norm(vectors, axis=1)) if flat else np.inf)
    if scalar and domain.bounds is not None:
        low, high = (matrices[:, None] * end - vectors for end in domain.bounds)
        return exact(np.max(np.linalg.norm(np.maximum(np.abs(low), np.abs(high)), axis=1)))
    top = np.abs(matrices) if scalar else np.linalg.eigvalsh(matrices)[:, -1]
    lengths = np.linalg.norm(vectors, axis=1)
    if domain.reach is not None:
        found = np.max(top * domain.reach + lengths)
        return exact(found) if scalar or rank_one else at_most(found)
    corners = domain.corners(size)  # a convex function is largest at one of them
    if domain.bounds is not None and corners is None:
        far = domain.farthest(np.zeros(size))
        return at_most(np.max(top * far + lengths))
    if corners is None:
        wanted = "be a box, a ball or the simplex"
        raise check.refuse("measure", "domain", wanted, domain)
    largest = 0.0
    for matrix, vector in zip(matrices, vectors, strict=True):
        moved = corners * matrix if scalar else corners @ matrix
        largest = max(largest, float(np.max(np.linalg.norm(moved - vector, axis=1))))
    return exact(largest)
