"""Random instances inside the theorems' assumptions, as hypothesis draws them.

An instance is a handful of numbers, so that a failing one can be read and run again; what the
clients see follows from them. The constants that the theorems ask for are worked out here by hand.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import mainstem as ms
from mainstem import parts, random
from mainstem.base import Drawn, Form, Mirror, Problem, Stream, Sync, constant
from mainstem.problems.raw import Raw
from mainstem.value import leaf, positive, value


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    """From low to high, every order of magnitude as likely as any other."""
    return st.floats(math.log10(low), math.log10(high)).map(lambda power: 10**power)


RUNS = 50  # seeds of which a mean or a share is taken
CLIENTS, PERIODS, DIMENSIONS = st.integers(1, 6), st.integers(1, 8), st.integers(1, 4)
SEEDS = st.integers(0, 2**16)


def step_counts(period: int, most: int = 60) -> st.SearchStrategy[int]:
    """Whole rounds, since a ragged end costs another compilation."""
    return st.integers(1, most // period).map(lambda rounds: period * rounds)


ORDERS = ("drawn", "alternating", "turning", "blocks")


def signs(order: str, steps: int, period: int, draw: np.random.Generator) -> np.ndarray:
    """Signs, [steps, 1, 1]: by a coin, in turn, once, or by a coin whenever a sync may come."""
    coins, times = draw.choice([-1, 1], size=steps), np.arange(steps)
    found = {
        "drawn": coins,
        "alternating": (-1) ** times,
        "turning": np.where(2 * times < steps, 1, -1),
        "blocks": np.repeat(coins, period)[:steps],
    }
    return found[order][:, None, None]


# --- FedOMD: whatever losses on a bounded domain --------------------------------------------------


class Game(NamedTuple):
    """Losses that an adversary might have chosen."""

    clients: int
    steps: int
    syncs: Any  # the period, or the steps
    shape: str  # of the domain: box, ball or simplex
    dimension: int
    size: float  # of the domain; of experts' losses
    low: float  # end of the box, in sizes; the high one is 1
    curvature: float
    reach: float  # of the targets, in sizes: the losses of far ones are almost linear
    apart: float  # how different the clients are, against the reach
    order: str
    seed: int

    @property
    def prefixes(self) -> np.ndarray:
        return np.arange(1, self.steps + 1)

    @property
    def sync(self) -> Sync:
        periodic = np.ndim(self.syncs) == 0
        return parts.every(self.syncs) if periodic else parts.after_steps(self.syncs)

    @property
    def period(self) -> int:
        if np.ndim(self.syncs) == 0:
            return min(self.syncs, self.steps)
        return int(np.max(np.diff([0, *sorted(self.syncs), self.steps])))

    @property
    def targets(self) -> np.ndarray:
        """[steps, clients, dimension]: all alternate, each around its own centre."""
        draw, size = np.random.default_rng(self.seed), (self.clients, self.dimension)
        common = signs(self.order, self.steps, self.period, draw) * draw.normal(size=self.dimension)
        luck = 0.1 * draw.normal(size=(self.steps, *size))
        return self.size * self.reach * (common + self.apart * draw.normal(size=size) + luck)

    @property
    def stream(self) -> Stream:
        table = self.targets

        def sample(key: Any, t: Any, k: Any) -> Any:
            return (), constant(table)[t - 1, k]

        return ms.streams.generated(sample, self.clients, self.steps)

    @property
    def problem(self) -> Problem:
        if self.shape == "simplex":
            return ms.problems.experts(self.dimension)
        return ms.problems.quadratic(self.dimension, self.curvature)

    @property
    def mirror(self) -> Mirror:
        if self.shape == "simplex":
            return parts.entropy()
        box = self.shape == "box"
        return parts.euclidean(parts.box(*self.ends) if box else parts.l2_ball(self.size))

    @property
    def ends(self) -> tuple[float, float]:
        return self.low * self.size, self.size

    @property
    def lipschitz(self) -> float:
        """The largest gradient on the domain, in the dual norm of its map."""
        a = self.targets
        if self.shape == "simplex":
            return float(np.max(np.abs(a)))
        if self.shape == "ball":
            return float(self.curvature * (self.size + np.max(np.linalg.norm(a, axis=2))))
        far = np.maximum(*(np.abs(a - end) for end in self.ends))
        return float(self.curvature * np.max(np.linalg.norm(far, axis=2)))

    @property
    def divergence(self) -> float:
        """From the first model: the uniform mixture, or the point of the domain nearest to zero."""
        if self.shape == "simplex":
            return math.log(self.dimension)
        low, high = self.ends if self.shape == "box" else (-self.size, self.size)
        start = max(low, 0.0)
        coordinates = self.dimension if self.shape == "box" else 1
        return coordinates * max(start - low, high - start) ** 2 / 2


@st.composite
def games(draw: Any) -> Game:
    shape, period = draw(st.sampled_from(["box", "ball", "simplex"])), draw(PERIODS)
    steps = draw(step_counts(period))
    irregular = st.sets(st.integers(1, steps), min_size=1).map(lambda times: tuple(sorted(times)))
    return Game(
        clients=draw(CLIENTS),
        steps=steps,
        syncs=draw(st.one_of(st.just(period), st.just(period), irregular)),
        shape=shape,
        dimension=draw(DIMENSIONS) + (shape == "simplex"),
        size=draw(powers(0.1, 10)),
        low=draw(st.floats(-1, 0.5)),
        curvature=draw(powers(0.01, 100)),
        reach=draw(powers(0.1, 100)),
        apart=draw(powers(0.01, 10)),
        order=draw(st.sampled_from(ORDERS)),
        seed=draw(SEEDS),
    )


class Lottery(NamedTuple):
    """Losses (curvature / 2) |x - a|^2 on a box, each client's targets in an interval of its own.

    They are i.i.d. in the first `RUNS` seeds of a run; then come as many as there are orders, with
    targets at the ends of the intervals only.
    """

    clients: int
    steps: int
    period: int
    dimension: int
    size: float  # half the width of the box
    curvature: float
    reach: float  # half the width of the intervals, in sizes
    apart: float  # of their centres, in sizes
    coin: bool  # whether i.i.d. targets are at the ends, too
    risk: float
    seed: int

    @property
    def centres(self) -> np.ndarray:
        """One for each client, in one half of the space: the best model is not the first."""
        draw = np.random.default_rng(self.seed)
        return self.size * (0.5 + self.apart * draw.uniform(-1, 1, (self.clients, self.dimension)))

    def targets(self, run: int) -> np.ndarray:
        """What the clients see in one of the seeds, [steps, clients, dimension]."""
        draw, size = np.random.default_rng([self.seed, run]), (self.clients, self.dimension)
        if run >= RUNS:
            positions = signs(ORDERS[run - RUNS], self.steps, self.period, draw) * np.ones(size)
        else:
            positions = draw.uniform(-1, 1, (self.steps, *size))
        return self.centres + self.size * self.reach * (
            np.sign(positions) if self.coin else positions
        )

    @property
    def stream(self) -> Stream:
        return ms.streams.generated(
            lambda key, t, k, once: ((), once.cycle),
            self.clients,
            self.steps,
            drawn=lambda seed: Drawn(cycle=self.targets(seed)),
        )

    @property
    def problem(self) -> Problem:
        return ms.problems.quadratic(self.dimension, self.curvature, -self.size, self.size)

    @property
    def lipschitz(self) -> float:
        far = self.size + np.abs(self.centres) + self.size * self.reach
        return float(self.curvature * np.max(np.linalg.norm(far, axis=1)))

    @property
    def divergence(self) -> float:
        return self.dimension * self.size**2 / 2

    @property
    def largest(self) -> float:
        """Of the losses: where the gradient is largest, too."""
        return self.lipschitz**2 / (2 * self.curvature)

    @property
    def chance(self) -> dict[str, Any]:
        return {"clients": self.clients, "largest": self.largest, "risk": self.risk}

    def excess(self, models: np.ndarray) -> np.ndarray:
        """The exact risk of each model less the least: the spread of the targets cancels."""
        middle = self.centres.mean(axis=0)
        best = np.clip(middle, -self.size, self.size)
        apart = np.sum((models - middle) ** 2, axis=1) - np.sum((best - middle) ** 2)
        return self.curvature / 2 * apart


@st.composite
def lotteries(draw: Any) -> Lottery:
    period = draw(PERIODS)
    return Lottery(
        clients=draw(CLIENTS),
        steps=draw(
            step_counts(period, 400)
        ),  # after sixty the risk's bound is above the largest loss
        period=period,
        dimension=draw(DIMENSIONS),
        size=draw(powers(0.1, 10)),
        curvature=draw(powers(0.01, 100)),
        reach=draw(powers(0.1, 10)),
        apart=draw(powers(0.01, 3)),
        coin=draw(st.booleans()),
        risk=draw(powers(0.01, 0.5)),
        seed=draw(SEEDS),
    )


# --- FedSEA: an adversary who picks distributions -------------------------------------------------


@value
class Bent(Raw):
    """Half the squared distance to a hidden target, each coordinate of it times its own factor."""

    bends: Any = leaf()
    curvature: float = positive()  # the least of them

    domain = parts.everything()

    def init(self, key: Any) -> Any:
        return jnp.zeros(len(self.bends))

    def loss(self, params: Any, seen: Any) -> Any:
        return 0.5 * jnp.sum(constant(self.bends) * (params - seen) ** 2)

    def form(self, seen: Any) -> Form:
        bent = constant(self.bends)
        return Form(jnp.diag(bent), bent * seen, 0.5 * jnp.sum(bent * seen**2))


class Sea(NamedTuple):
    """`streams.sea_quadratic`, or the same with losses that are bent differently in each direction."""

    clients: int
    steps: int
    period: int
    dimension: int
    noise: float
    spatial: float
    temporal: float
    drift: str
    distance: float
    curvature: float
    condition: float  # the largest second derivative over the smallest
    seed: int

    @property
    def bends(self) -> np.ndarray:
        """The second derivatives."""
        return self.curvature * np.geomspace(1, self.condition, self.dimension)

    @property
    def variance(self) -> float:
        """Of a target's coordinate, such that the noise of the gradient is `noise`."""
        return float(self.noise / np.sum(self.bends**2))

    @property
    def asked(self) -> dict[str, Any]:
        """The constants given to tuning, which `sea_quadratic` then has."""
        spatial = self.spatial if self.clients > 1 else 0.0
        known = {"noise": self.noise, "spatial": spatial, "temporal": self.temporal}
        return known | {"distance": self.distance}

    @property
    def stream(self) -> Stream:
        if self.condition == 1:
            more = {"drift": self.drift, "curvature": self.curvature, "seed": self.seed}
            return ms.streams.sea_quadratic(self.clients, self.dimension, **self.asked, **more)
        table, bends, variance = self.targets, self.bends, self.variance

        def sample(key: Any, t: Any, k: Any) -> Any:
            luck = random.normal(key, (self.dimension,))
            return (), constant(table)[t - 1, k] + math.sqrt(variance) * luck

        def expected(t: Any, k: Any) -> Form:
            a, bent = constant(table)[t - 1, k], constant(bends)
            return Form(jnp.diag(bent), bent * a, 0.5 * jnp.sum(bent * (a**2 + variance)))

        return ms.streams.generated(sample, self.clients, self.steps, expected)

    @property
    def problem(self) -> Problem:
        if self.condition == 1:
            return ms.problems.quadratic(self.dimension, self.curvature)
        return Bent(self.bends, self.curvature)

    @property
    def targets(self) -> np.ndarray:
        """What is expected, [steps, clients, dimension]: our own where the losses are bent."""
        if self.condition == 1:
            return expected_vectors(self.stream, self.steps) / self.curvature
        draw, size = np.random.default_rng(self.seed), self.dimension
        to_and_fro = signs("alternating", self.steps, 1, draw) * draw.normal(size=size)
        luck = draw.normal(size=(self.steps, 1, size))
        drift = math.sqrt(self.temporal) * (to_and_fro if self.drift == "alternating" else luck)
        own = math.sqrt(self.spatial) * draw.normal(size=(self.clients, size))
        return self.distance * draw.normal(size=size) + drift + own

    def constants(self, prefixes: list[int], over_time: Any) -> dict[str, Any]:
        """sigma^2, zeta^2 and K^2, their mean or maximum over some first steps, and |x*|."""
        targets, bends = self.targets, self.bends
        middle = targets.mean(axis=1)  # the minimiser of the mean loss of a step
        around = np.sum((bends * (targets - middle[:, None])) ** 2, axis=2).mean(axis=1)
        bests = [middle[:t].mean(axis=0) for t in prefixes]
        above = [(best - middle) ** 2 @ bends / 2 for best in bests]
        return {
            "noise": self.noise,
            "spatial": np.array([over_time(around[:t]) for t in prefixes]),
            "temporal": np.array([over_time(k[:t]) for k, t in zip(above, prefixes, strict=True)]),
            "distance": np.linalg.norm(bests, axis=1),
        }


def expected_vectors(stream: Stream, steps: int) -> np.ndarray:
    """The vectors of a stream's expected losses, [steps, clients, dimension]."""
    expected = stream.expected
    assert expected is not None
    with jax.enable_x64(True):
        by_client = jax.vmap(lambda t, k: expected(t, k).vector, (None, 0))
        found = jax.jit(jax.vmap(by_client, (0, None)))
        return np.asarray(found(jnp.arange(1, steps + 1), jnp.arange(stream.clients)))


@st.composite
def seas(draw: Any) -> Sea:
    period = draw(PERIODS)
    bent = st.one_of(st.just(1.0), powers(1, 20), powers(1, 20))
    return Sea(
        clients=draw(CLIENTS),
        steps=draw(step_counts(period, 200)),
        period=period,
        dimension=draw(st.integers(2, 4)),
        noise=draw(powers(0.001, 10)),
        spatial=draw(powers(0.01, 100)),
        temporal=draw(powers(0.001, 10)),
        drift=draw(st.sampled_from(["alternating", "random"])),
        distance=draw(powers(0.1, 10)),
        curvature=draw(powers(0.1, 10)),
        condition=draw(bent),
        seed=draw(SEEDS),
    )


# --- OFedIQ: given data, randomness in who participates and how messages are rounded --------------


class Rows(NamedTuple):
    """Regression samples, the same for all seeds of a run."""

    clients: int
    steps: int
    period: int
    dimension: int
    rates: Any  # one, or one for each client
    levels: int | None
    blocks: int
    share: float  # of the largest step that the theorem allows
    ridge: float
    size: float  # of the features
    apart: float  # of the clients' own slopes
    noise: float  # of the labels
    still: bool  # every client sees one sample again and again
    seed: int

    @property
    def samples(self) -> tuple[np.ndarray, np.ndarray]:
        """Features [steps, clients, dimension] and labels [steps, clients]."""
        draw = np.random.default_rng(self.seed)
        x = self.size * draw.normal(size=(self.steps, self.clients, self.dimension))
        slopes = draw.normal(size=self.dimension) + self.apart * draw.normal(size=x.shape[1:])
        y = np.sum(x * slopes, axis=2) + self.noise * draw.normal(size=x.shape[:2])
        which = np.zeros(self.steps, int) if self.still else np.arange(self.steps)
        return x[which], y[which]

    @property
    def stream(self) -> Stream:
        x, y = self.samples

        def sample(key: Any, t: Any, k: Any) -> Any:
            return constant(x)[t - 1, k], constant(y)[t - 1, k]

        return ms.streams.generated(sample, self.clients, self.steps)

    @property
    def problem(self) -> Problem:
        return ms.problems.linear(self.dimension, ridge=self.ridge, intercept=False)

    @property
    def smoothness(self) -> float:
        return float(np.max(np.sum(self.samples[0] ** 2, axis=2))) + self.ridge

    def constants(self, prefixes: list[int]) -> dict[str, Any]:
        """|w*| (the shortest, where several are best) and the mean squared gradient there."""
        found = [self._best(*(part[:t] for part in self.samples)) for t in prefixes]
        distance, variance = np.array(found).T
        return {"distance": distance, "variance": variance}

    def _best(self, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        x, y = x.reshape(-1, self.dimension), y.reshape(-1, 1)
        matrix = x.T @ x / len(x) + self.ridge * np.eye(self.dimension)
        best = np.linalg.pinv(matrix, hermitian=True) @ (x.T @ y / len(x))
        slopes = (x @ best - y) * x + self.ridge * best.T
        return float(np.linalg.norm(best)), float(np.mean(np.sum(slopes**2, axis=1)))


@st.composite
def rows(draw: Any, most: int = 1) -> Rows:
    """With a period of up to `most`, and with rounded messages if that is above 1."""
    clients, period = draw(CLIENTS), draw(st.integers(1, most))
    dimension = draw(st.integers(1, 6))
    rate = st.floats(0.1, 1)
    one_each = st.lists(rate, min_size=clients, max_size=clients).map(tuple)
    levels = draw(st.one_of(st.none(), st.integers(1, 5))) if most > 1 else None
    return Rows(
        clients=clients,
        steps=draw(step_counts(period)),
        period=period,
        dimension=dimension,
        rates=draw(st.one_of(st.just(1.0), rate, one_each)),
        levels=levels,
        blocks=1 if levels is None else draw(st.integers(1, dimension)),
        share=draw(st.one_of(st.just(0.99), powers(0.05, 0.99))),
        ridge=draw(st.one_of(st.just(0.0), powers(0.01, 1))),
        size=draw(powers(0.1, 10)),
        apart=draw(powers(0.01, 3)),
        noise=draw(powers(0.01, 3)),
        still=draw(st.booleans()),
        seed=draw(SEEDS),
    )
