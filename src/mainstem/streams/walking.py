"""A stream with a drifting classifier and heterogeneous clients (Rizk, Vlaski and Sayed 2020, Section IV)."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import At, Drawn, Params, Sample, Stream, constant
from mainstem.value import at_least, integer, leaf, positive, static, value

NODES = 8  # quadrature nodes per direction: exact to 1e-8 for |w| up to 1, to 4e-6 up to 2.5
NEWTON = 7  # iterations


class Agents(NamedTuple):
    """What is drawn once for each client (agent in the paper)."""

    offsets: Any  # c_k
    scales: Any  # the features' standard deviation


def _holds(owner: str, name: str, given: Any) -> Any:
    counts = check.counts(owner, name, given)
    return tuple(counts.tolist()) if counts.ndim else int(counts)


def _point(owner: str, name: str, given: Any) -> np.ndarray:
    try:
        point = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise check.refuse(owner, name, "be two numbers", given) from None
    if point.shape != (2,) or not np.isfinite(point).all() or not point.any():
        raise check.refuse(owner, name, "be two numbers, not both 0", given)
    return point


@value
class walking(Stream):
    r"""A new batch of 2-dimensional features per client and step, labelled by a line that drifts.

    The line follows the random walk :math:`w^\star_i = w^\star_{i-1} + q_i` (eq. (17)) with :math:`q_i` ~
    N(0, `drift`) in each coordinate. Client k has the line :math:`w^\star_i + c_k` with :math:`c_k` ~
    N(0, `spread`); labels are its sign on features N(0, v_k), with v_k uniform in [0.5, 1.5]. `holds` is
    N_k, one or one per client. The walk starts at a draw from N(0, I), or at `start`. Everything is drawn
    from the run's seed.

    For ``problems.batched(problems.logistic(2, ridge=ridge, intercept=False))``, whose ridge is
    twice the paper's rho. The stream knows the minimiser of the *population* aggregate risk at each
    step (quadrature and Newton's method), so that `measure=["deviation"]` is the squared deviation of
    `measure.msd(run)`.

    >>> walking(clients=20, drift=0.01).clients
    20
    """

    clients: int = integer(least=1)
    holds: Any = static(default=100, checked=_holds)  # static: it determines the batch size
    drift: float = at_least(0, default=0.0)
    spread: float = at_least(0, default=0.1)
    ridge: float = positive(default=2.0)
    start: Any = leaf(default=None, checked=_point)

    def admit(self) -> None:
        if np.ndim(self.holds) and np.size(self.holds) != self.clients:
            wanted = f"have one entry for each of {self.clients} clients"
            raise check.refuse("walking", "holds", wanted, list(self.holds))

    def drawn(self, seed: int) -> Drawn:
        draw = np.random.default_rng([seed, 10])
        offsets = math.sqrt(self.spread) * draw.normal(size=(self.clients, 2))
        return Drawn(each=Agents(offsets, np.sqrt(draw.uniform(0.5, 1.5, self.clients))))

    def chunk(self, seed: int, first: int, last: int) -> np.ndarray:
        draw = np.random.default_rng([seed, 11])
        origin = draw.normal(size=2) if self.start is None else self.start
        path = origin + np.cumsum(math.sqrt(self.drift) * draw.normal(size=(last, 2)), axis=0)
        path = np.concatenate([origin[None], path])
        steps = np.stack([path[first - 1 : last], path[first : last + 1]], axis=1)  # old, new
        return np.broadcast_to(steps[:, None], (last - first + 1, self.clients, 2, 2))

    @property
    def batch(self) -> int | None:
        return None if np.ndim(self.holds) else int(self.holds)

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        agent, most = drawn.each, int(np.max(self.holds))
        features = agent.scales * random.normal(at.key, (most, 2))
        line = piece[1] + agent.offsets
        side = features[:, 0] * line[0] + features[:, 1] * line[1]  # faster than a matrix product
        labels = (side > 0).astype(jnp.int32)
        held = jnp.asarray(self.holds, jnp.int32)
        return Sample(features, labels, held[at.k] if held.ndim else None)

    def minimiser(self, drawn: Drawn, piece: Any, t: Any) -> Params:
        agents = drawn.each
        return least_risk(piece[0] + agents.offsets, agents.scales, self.ridge)


def least_risk(lines: Any, scales: Any, ridge: Any) -> Params:
    r"""The minimiser of the mean over clients of E log(1 + exp(-y h'w)) + ridge |w|^2 / 2.

    With y = sign(h'l) the vector y h is a Gaussian folded onto the half-plane of l: along l it is
    half-normal, across it normal.
    """
    along, half = _half_normal(NODES)
    across, normal = np.polynomial.hermite_e.hermegauss(NODES)
    weights = constant(np.outer(half, normal / math.sqrt(2 * math.pi)).ravel())
    grid = constant(np.stack(np.meshgrid(along, across, indexing="ij"), axis=-1).reshape(-1, 2))
    unit = lines / jnp.sqrt(jnp.sum(lines**2, axis=1, keepdims=True))
    turned = jnp.stack([-unit[:, 1], unit[:, 0]], axis=1)
    points = scales[:, None, None] * (
        grid[None, :, :1] * unit[:, None] + grid[None, :, 1:] * turned[:, None]
    )
    points, counts = points.reshape(-1, 2), jnp.tile(weights, len(lines)) / len(lines)

    def better(_: int, w: Params) -> Params:
        wrong = jax.nn.sigmoid(-(points @ w))
        slope = ridge * w - (counts * wrong) @ points
        bend = (points * (counts * wrong * (1 - wrong))[:, None]).T @ points
        return w - jnp.linalg.solve(bend + ridge * jnp.eye(2, dtype=w.dtype), slope)

    return jax.lax.fori_loop(0, NEWTON, better, jnp.zeros(2, points.dtype))


@functools.cache
def _half_normal(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes and weights for the half-normal distribution.

    Computed from the recurrence of its orthogonal polynomials (Stieltjes) on a fine grid, and from the
    eigenvalues of their Jacobi matrix (Golub and Welsch 1969).
    """
    points, shares = np.polynomial.legendre.leggauss(200)
    grid = 6 * (points + 1)
    mass = shares * np.exp(-(grid**2) / 2)
    mass /= mass.sum()
    before, now = np.zeros_like(grid), np.ones_like(grid)
    middle, side = np.zeros(count), np.zeros(count)
    for n in range(count):
        middle[n] = np.sum(mass * grid * now**2)
        ahead = (grid - middle[n]) * now - (side[n - 1] if n else 0) * before
        side[n] = np.sqrt(np.sum(mass * ahead**2))
        before, now = now, ahead / side[n]
    nodes, vectors = np.linalg.eigh(
        np.diag(middle) + np.diag(side[:-1], 1) + np.diag(side[:-1], -1)
    )
    return nodes, vectors[0] ** 2
