"""Random instances for certificates, and their truth in 60 digits: see test_certificates.py.

An instance is a table of samples, dealt once to all clients, so that the sum over steps of means over clients is
the sum of all losses over the number of clients. Its loss is evaluated exactly at any point. Every feasible point
bounds the minimum from above; the points tried are our own solution, CVXPY's, and the result of Newton's method in
60 digits from the better of them.
"""

from typing import Any, NamedTuple

import cvxpy as cp
import mpmath as mp
import numpy as np

import mainstem as ms
from mainstem import parts
from mainstem.base import Domain, Problem, Stream
from mainstem.measure.hindsight import best_fixed
from mainstem.measure.question import Hindsight, Question
from tests.algorithms.table import tabled

mp.mp.dps = 60
ZERO = mp.mpf(0)


class Instance(NamedTuple):
    """A problem, its samples, and the domain of its models."""

    loss: str  # "square" or "logistic"
    features: np.ndarray  # [rows, D]
    target: np.ndarray
    ridge: float
    domain: str  # "everything", "box", "ball" or "simplex"
    radius: float
    clients: int
    replayed: bool  # the samples come from a stream whose rows are not known beforehand

    @property
    def problem(self) -> Problem:
        size, ridge = self.features.shape[1], self.ridge or None
        if self.loss == "square":
            return ms.problems.linear(size, ridge=ridge, intercept=False)
        return ms.problems.logistic(size, ridge=ridge, intercept=False)

    @property
    def steps(self) -> int:
        return len(self.target) // self.clients

    @property
    def stream(self) -> Stream:
        if not self.replayed:
            return ms.streams.arrays(self.features, self.target, clients=self.clients)
        shape = (self.steps, self.clients)
        rows = self.features.reshape(*shape, -1), self.target.reshape(shape)
        return tabled(rows)

    @property
    def set(self) -> Domain:
        return {
            "everything": parts.everything(),
            "box": parts.box(-self.radius, self.radius),
            "ball": parts.l2_ball(self.radius),
            "simplex": parts.simplex(),
        }[self.domain]

    @property
    def best(self) -> Hindsight:
        start = np.zeros(self.features.shape[1])
        question = Question(self.problem, self.stream, self.set, 0, self.radius, start)
        return best_fixed(question, [self.steps])

    # --- exactly ----------------------------------------------------------------------------------

    def value(self, point: Any) -> Any:
        """The sum over steps of means over clients at a point, in 60 digits."""
        total = ZERO
        for row, target in zip(self.features, self.target, strict=True):
            total += _penalty(self.loss, _dot(row, point), mp.mpf(float(target)))
        bend = mp.mpf(self.ridge) / 2 * sum((w * w for w in point), ZERO)
        return total / self.clients + self.steps * bend

    def slope(self, point: Any) -> tuple[Any, Any]:
        """Gradient and second derivatives at a point."""
        size = self.features.shape[1]
        gradient = mp.matrix(size, 1)
        curve = mp.matrix(size, size)
        for row, target in zip(self.features, self.target, strict=True):
            first, second = _derivatives(self.loss, _dot(row, point), mp.mpf(float(target)))
            x = [mp.mpf(float(each)) for each in row]
            for i in range(size):
                gradient[i] += first * x[i] / self.clients
                for j in range(size):
                    curve[i, j] += second * x[i] * x[j] / self.clients
        for i in range(size):
            gradient[i] += self.steps * mp.mpf(self.ridge) * point[i]
            curve[i, i] += self.steps * mp.mpf(self.ridge)
        return gradient, curve

    def inside(self, point: Any) -> list[Any]:
        """A point of the domain near this one, exactly inside."""
        point = [mp.mpf(each) if not isinstance(each, mp.mpf) else each for each in point]
        radius = mp.mpf(self.radius)
        if self.domain == "box":
            return [min(max(each, -radius), radius) for each in point]
        if self.domain == "ball" or self.unbounded:
            size = mp.sqrt(sum((each * each for each in point), ZERO))
            return point if size <= radius else [each * radius / size for each in point]
        if self.domain == "simplex":
            point = [max(each, ZERO) for each in point]
            total = sum(point, ZERO)
            return [each / total for each in point] if total else _uniform(len(point))
        return point

    @property
    def unbounded(self) -> bool:
        """Whether the minimum is taken in a ball, because there is none over everything."""
        return self.domain == "everything" and self.loss == "logistic" and not self.ridge

    def rivals(self, ours: np.ndarray) -> list[list[Any]]:
        """Points of the domain that may be better than ours."""
        found = [self.inside([mp.mpf(float(each)) for each in ours])]
        other = self._cvxpy()
        if other is not None and np.isfinite(other).all():
            found.append(self.inside([mp.mpf(float(each)) for each in other]))
        best = min(found, key=self.value)
        return [*found, self._newton(best)]

    def _newton(self, point: list[Any]) -> list[Any]:
        """Newton's method on the coordinates that no constraint holds, a few steps."""
        size = len(point)
        for _ in range(6):
            gradient, curve = self.slope(point)
            free = [j for j in range(size) if not self._held(point, gradient, j)]
            if not free or self.domain in ("ball", "simplex") or self.unbounded:
                break
            matrix = mp.matrix(len(free), len(free))
            right = mp.matrix(len(free), 1)
            for a, i in enumerate(free):
                right[a] = -gradient[i]
                for b, j in enumerate(free):
                    matrix[a, b] = curve[i, j]
                matrix[a, a] += mp.mpf(10) ** -40 * (1 + curve[i, i])
            move = mp.lu_solve(matrix, right)
            ahead = list(point)
            for a, i in enumerate(free):
                ahead[i] = ahead[i] + move[a]
            ahead = self.inside(ahead)
            if self.value(ahead) >= self.value(point):
                break
            point = ahead
        return point

    def _held(self, point: list[Any], gradient: Any, j: int) -> bool:
        if self.domain != "box":
            return False
        at_top, at_bottom = point[j] >= self.radius, point[j] <= -self.radius
        return bool((at_top and gradient[j] < 0) or (at_bottom and gradient[j] > 0))

    def _cvxpy(self) -> np.ndarray | None:
        scale = float(np.abs(self.target).max()) if self.loss == "square" else 1.0
        scale = scale or 1.0
        w = cp.Variable(self.features.shape[1])
        scores = self.features @ w
        if self.loss == "square":
            loss = cp.sum_squares(scores / scale - self.target / scale) / 2
        else:
            loss = cp.sum(cp.logistic(cp.multiply(1 - 2 * self.target, scores)))
        if self.ridge:
            loss += len(self.target) * self.ridge / 2 * cp.sum_squares(w / scale)
        limits: list[Any] = []
        if self.domain == "box":
            limits = [w >= -self.radius, w <= self.radius]
        elif self.domain == "ball" or self.unbounded:
            limits = [cp.norm(w) <= self.radius]
        elif self.domain == "simplex":
            limits = [w >= 0, cp.sum(w) == 1]
        try:
            cp.Problem(cp.Minimize(loss), limits).solve(solver=cp.CLARABEL)
        except (cp.SolverError, ValueError):
            return None
        return None if w.value is None else np.asarray(w.value)


def _dot(row: np.ndarray, point: Any) -> Any:
    return sum((mp.mpf(float(x)) * w for x, w in zip(row, point, strict=True)), ZERO)


def _uniform(size: int) -> list[Any]:
    return [mp.mpf(1) / size] * size


def _penalty(loss: str, score: Any, target: Any) -> Any:
    if loss == "square":
        return (score - target) ** 2 / 2
    return mp.log1p(mp.exp(-abs(score))) + max(score, ZERO) - target * score


def _derivatives(loss: str, score: Any, target: Any) -> tuple[Any, Any]:
    if loss == "square":
        return score - target, mp.mpf(1)
    chance = 1 / (1 + mp.exp(-score))
    return chance - target, chance * (1 - chance)


def drawn(seed: int) -> Instance:
    """A random instance: any scale, rank-deficient, near-separable or with active constraints."""
    draw = np.random.default_rng(seed)
    clients, steps, size = (int(draw.integers(*limits)) for limits in ((1, 5), (5, 25), (1, 6)))
    rows = clients * steps
    features = draw.normal(size=(rows, size)) * 10.0 ** draw.uniform(-2, 2)
    if draw.random() < 0.3 and size > 1:
        features[:, -1] = features[:, 0] * draw.integers(0, 3)  # rank-deficient
    if draw.random() < 0.1:
        features[:, 0] = 1e-7 * draw.normal(size=rows)  # a column that hardly matters
    loss = "logistic" if draw.random() < 0.4 else "square"
    truth = draw.normal(size=size)
    if loss == "square":
        target = features @ truth + draw.normal(size=rows) * 10.0 ** draw.uniform(-3, 0)
        target = target + draw.choice([0.0, 1.0, 10.0])
        target = target * 10.0 ** draw.uniform(-6, 8)
    else:
        noise = draw.choice([0.0, 0.3, 2.0]) * draw.normal(size=rows)  # 0: separable
        target = (features @ truth + noise * np.abs(features).max() > 0).astype(int)
        target[0], target[-1] = 0, 1
    ridge = float(draw.choice([0.0, 0.0, 1e-6, 0.1]))
    domain = str(draw.choice(["everything", "everything", "box", "ball", "simplex"]))
    radius = float(10.0 ** draw.uniform(-2, 2))
    return Instance(
        loss, features, target, ridge, domain, radius, clients, bool(draw.random() < 0.5)
    )


def refuted(instance: Instance) -> str | None:
    """How the certificate of an instance is wrong; None: it is true."""
    found = instance.best
    value, gap = mp.mpf(float(found.values[0])), mp.mpf(float(found.gaps[0]))
    ours = instance.value([mp.mpf(float(each)) for each in found.params])
    if abs(ours - value) > gap:
        off = mp.nstr(abs(ours - value), 5)
        return f"its own value is off by {off}, gap {mp.nstr(gap, 5)}, value {mp.nstr(ours, 12)}"
    for name, rival in zip(
        ("ours", "cvxpy", "newton"), instance.rivals(found.params), strict=False
    ):
        better = instance.value(rival)
        if better < value - gap:
            short = mp.nstr(value - gap - better, 5)
            return f"{name} has {mp.nstr(better, 12)}, below the bound by {short}, gap {mp.nstr(gap, 5)}"
    return None
