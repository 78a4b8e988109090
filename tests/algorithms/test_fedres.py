"""FedRes and its baselines against plain loops written from the paper (float64, 1e-10)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import mainstem as ms
from mainstem import parts, random
from mainstem.base import Pair, Stream, constant
from mainstem.engines.federate.protocol.run_document import parse
from tests.algorithms.table import tabled
from tests.reference import fedres as reference
from tests.thinned import thinned


class World(NamedTuple):
    """Samples given by tables: xg[t, k], xl[t, k], y[t, k], and who sees something."""

    xg: np.ndarray
    xl: np.ndarray
    y: np.ndarray
    present: np.ndarray | None = None

    @property
    def stream(self) -> Stream:
        rows = ((self.xg, self.xl), self.y)
        return tabled(rows if self.present is None else (*rows, self.present))

    def loss(self, shared: np.ndarray, own: np.ndarray) -> np.ndarray:
        """The mean loss of each step at these models [T, P, ...]."""
        score = np.sum(self.xg * shared, axis=2) + np.sum(self.xl * own, axis=2)
        losses = (self.y - score) ** 2
        return np.mean(losses if self.present is None else self.present * losses, axis=1)


def world(T: int, P: int, d: int = 3, dl: int = 2, seed: int = 0, present: bool = False) -> World:
    draw = np.random.default_rng(seed)
    xg, xl = draw.normal(size=(T, P, d)), draw.normal(size=(T, P, dl))
    truth, own = draw.normal(size=d), draw.normal(size=(P, dl))
    y = xg @ truth + np.einsum("tpi,pi->tp", xl, own) + 0.1 * draw.normal(size=(T, P))
    return World(xg, xl, y, draw.uniform(size=(T, P)) < 0.6 if present else None)


def agrees(run: ms.Run, given: World, expected: dict[str, np.ndarray]) -> None:
    assert np.allclose(
        run.loss, given.loss(expected["shared"], expected["own"]), rtol=0, atol=1e-10
    )
    assert np.allclose(run.model, expected["server"][-1], rtol=0, atol=1e-10)


def simulated(algorithm: Any, given: World, start: Any = None, **settings: Any) -> ms.Run:
    problem = ms.problems.personal(given.xg.shape[2], given.xl.shape[2], start=start)
    return ms.simulate(
        algorithm, problem, given.stream, steps=len(given.y), dtype="float64", **settings
    )


DELAYS = {
    "none": ([0] * 4, [0] * 4),
    "up": ([3] * 4, [0] * 4),
    "down": ([0] * 4, [4] * 4),
    "mixed": ([0, 3, 1, 5], [4, 0, 2, 5]),
}


@pytest.mark.parametrize(
    ("delays", "radius"),
    thinned(DELAYS, [None, 0.7], gate=[("none", 0.7), *((delays, None) for delays in DELAYS)]),
)
def test_sgd_is_algorithms_3_and_4(delays, radius):
    given, (up, down) = world(40, 4), DELAYS[delays]
    domain = parts.everything() if radius is None else parts.l2_ball(radius)
    algorithm = ms.fedres_sgd(0.02, own_step=0.05, domain=domain)
    run = simulated(algorithm, given, network=ms.network(up, down))
    links = {"up": up, "down": down}
    expected = reference.fedres_sgd(
        given.xg, given.xl, given.y, step=0.02, own_step=0.05, radius=radius, **links
    )
    agrees(run, given, expected)
    if radius is not None:  # the ball was met
        assert np.isclose(np.linalg.norm(expected["server"][1:], axis=1), radius).any()


@pytest.mark.parametrize("message", ["sample", "gradient"])
@pytest.mark.parametrize("variant", ["undelayed", "on_arrival"])
def test_sgd_misaligned(variant, message):
    if variant == "on_arrival" and message == "gradient":
        with pytest.raises(ms.MainstemError, match="message must be sample"):
            ms.fedres_sgd(0.1, variant=variant, message=message)
        return
    given, (up, down) = world(40, 4), DELAYS["mixed"]
    algorithm = ms.fedres_sgd(0.02, own_step=0.05, variant=variant, message=message)
    run = simulated(algorithm, given, network=ms.network(up, down))
    expected = reference.fedres_sgd(
        given.xg, given.xl, given.y, step=0.02, own_step=0.05, up=up, down=down, variant=variant
    )
    agrees(run, given, expected)


@pytest.mark.parametrize("message", ["sample", "gradient"])
@pytest.mark.parametrize("delays", ["none", "mixed"])
def test_sgd_in_batches_with_clients_that_see_nothing(delays, message):
    given, (up, down) = world(42, 4, present=True), DELAYS[delays]
    algorithm = ms.fedres_sgd(0.05, own_step=0.1, period=3, message=message)
    run = simulated(algorithm, given, network=ms.network(up, down))
    expected = reference.fedres_sgd(
        given.xg,
        given.xl,
        given.y,
        step=0.05,
        own_step=0.1,
        period=3,
        up=up,
        down=down,
        present=given.present,
    )
    agrees(run, given, expected)
    numbers = 3 * (3 + 2) if message == "sample" else 3
    rounds = given.present[:42].reshape(14, 3, 4).any(axis=1).sum()
    assert run.uplink_bits[-1] == 64 * numbers * rounds


@pytest.mark.parametrize("variant", ["aligned", "undelayed"])
def test_a_falling_step_is_that_of_the_merge(variant):
    given, (up, down) = world(40, 4), DELAYS["mixed"]
    falling = {"step": parts.inverse_sqrt(0.05), "own_step": parts.inverse_sqrt(0.2)}
    run = simulated(ms.fedres_sgd(**falling, variant=variant), given, network=ms.network(up, down))
    steps = {"step": lambda t: 0.05 / t**0.5, "own_step": lambda t: 0.2 / t**0.5}
    expected = reference.fedres_sgd(
        given.xg, given.xl, given.y, **steps, up=up, down=down, variant=variant
    )
    agrees(run, given, expected)


def test_both_parts_of_a_gradient_take_one_step_size():
    given = world(40, 1, d=2, dl=2)
    given = given._replace(xl=given.xg)  # so that both parts of every gradient are equal
    algorithm = ms.fedres_sgd(parts.inverse_sqrt(0.1))
    run = simulated(algorithm, given, network=ms.network(up=2, down=3))
    shared, own = np.split(run.client_models[0], 2)
    assert np.allclose(shared, own, rtol=0, atol=1e-12)
    assert np.abs(shared).max() > 0.1


def test_sgd_with_adagrad():
    given, (up, down) = world(40, 4), DELAYS["mixed"]
    run = simulated(
        ms.fedres_sgd(parts.adagrad(0.3), own_step=parts.adagrad(0.3)),
        given,
        network=ms.network(up, down),
    )
    expected = reference.fedres_sgd(
        given.xg, given.xl, given.y, step=None, own_step=None, up=up, down=down, adagrad=0.3
    )
    agrees(run, given, expected)


@pytest.mark.parametrize(
    ("name", "delays", "radius"),
    thinned(
        ["fedres_erm", "fictitious_play"],
        ["none", "mixed"],
        [None, 8.0, 0.5],
        gate=[
            ("fedres_erm", "none", 8.0),
            ("fedres_erm", "mixed", None),
            ("fedres_erm", "mixed", 0.5),
            ("fictitious_play", "none", None),
            ("fictitious_play", "mixed", 8.0),
            ("fictitious_play", "none", 0.5),
        ],
    ),
)
def test_erm_and_fictitious_play(name, delays, radius):
    given, (up, down) = world(30, 4, d=2, dl=2, seed=3), DELAYS[delays]
    start = np.array([0.3, -0.1]), np.array([0.1, 0.2])
    run = simulated(
        getattr(ms, name)(radius=radius), given, start=start, network=ms.network(up, down)
    )
    expected = reference.fedres_erm(
        given.xg,
        given.xl,
        given.y,
        radius=radius,
        up=up,
        down=down,
        w0=start[0],
        v0=start[1],
        fictitious=name == "fictitious_play",
    )
    agrees(run, given, expected)
    met = np.isclose(np.linalg.norm(expected["server"][1:], axis=1), radius or np.inf).any()
    assert met == (radius == 0.5)  # active, and inactive


def test_simultaneous_erm_is_algorithm_6():
    given = world(25, 1, d=2, dl=2, seed=5)
    run = simulated(ms.fedres_erm(simultaneous=True), given)
    w, v, losses = np.zeros(2), np.zeros(2), []
    for t in range(25):
        xg, xl, y = given.xg[: t + 1, 0], given.xl[: t + 1, 0], given.y[: t + 1, 0]
        losses.append((y[-1] - xg[-1] @ w - xl[-1] @ v) ** 2)
        new = reference.nearest_minimiser(xg.T @ xg, xg.T @ (y - xl @ v), w, None)
        v = reference.nearest_minimiser(xl.T @ xl, xl.T @ (y - xg @ w), v, None)
        w = new
    assert np.allclose(run.loss, losses, rtol=0, atol=1e-9)


def test_independent_and_central():
    given, (up, down) = world(30, 4), DELAYS["mixed"]
    run = simulated(ms.independent(0.05), given)
    expected = reference.independent(given.xg, given.xl, given.y, step=0.05)
    assert np.allclose(run.loss, given.loss(expected["shared"], expected["own"]), atol=1e-10)
    run = simulated(ms.central(0.02), given, network=ms.network(up, down))
    expected = reference.central(given.xg, given.y, step=0.02, up=up, down=down)
    expected["own"] = np.zeros_like(given.xl)
    agrees(run, given, expected)


def test_bandit_is_section_5_1():
    T, P, A = 40, 3, 4
    draw = np.random.default_rng(1)
    xg, xl = draw.normal(size=(T, P, A, 3)), draw.normal(size=(T, P, A, 2))
    rewards = draw.uniform(size=(T, P, A))

    def sample(key, t, k):
        shown = constant(xg)[t - 1, k], constant(xl)[t - 1, k]
        return shown, ms.problems.Rewards(constant(rewards)[t - 1, k])

    problem = ms.problems.bandit(ms.problems.personal(3, 2), actions=A, period=4)
    stream = ms.streams.generated(sample, P, steps=T)
    run = ms.simulate(ms.fedres_sgd(0.05, own_step=0.1), problem, stream, steps=T, dtype="float64")
    uniform = _drawn(T, P, A)
    explore = np.broadcast_to((np.arange(1, T + 1) % 4 == 0)[:, None], (T, P))
    expected = reference.bandit(
        xg, xl, rewards, explore=explore, uniform_actions=uniform, step=0.05, own_step=0.1
    )
    earned = np.take_along_axis(rewards, expected["actions"][:, :, None], axis=2)[:, :, 0]
    assert np.allclose(run.column("reward"), earned.mean(axis=1), rtol=0, atol=1e-10)
    assert np.allclose(run.model, expected["server"][-1], rtol=0, atol=1e-10)
    assert run.uplink_bits[-1] == 64 * 5 * explore.sum()


def _drawn(T: int, P: int, A: int) -> np.ndarray:
    """The uniform actions that the run draws."""
    from mainstem import random

    keys = [
        [random.fold(random.root(0), random.DECIDE, t, k) for k in range(P)]
        for t in range(1, T + 1)
    ]
    return np.array([[int(random.uniform(key, (2,))[0] * A) for key in row] for row in keys])


def test_example_2_needs_local_models():
    """Agarwal et al. 2020, Example 2: half the clients need +v, half -v."""
    v = np.array([1.0, 0.5, -0.5])
    common = np.array([0.3, -0.2, 0.1])
    draw = np.random.default_rng(0)
    x = draw.normal(size=(400, 10, 3))
    signs = np.where(np.arange(10) < 5, 1.0, -1.0)
    y = x @ common + signs * (x @ v)
    given = World(x, x, y)
    alone = simulated(ms.central(0.004), given)
    both = simulated(ms.fedres_sgd(0.004, own_step=0.04), given)
    assert np.allclose(alone.model, common, atol=0.15)  # it finds the mean, and is stuck there
    assert alone.loss[-100:].mean() > 0.8 * v @ v
    assert both.loss[-100:].mean() < 0.01 * v @ v


def test_problem_without_parts_is_refused():
    stream = ms.streams.alternating(3)
    for build in (ms.fedres_sgd, ms.central):
        with pytest.raises(ms.MainstemError, match=f"^{build.__name__}: .* the sum of two parts"):
            ms.simulate(build(0.1), ms.problems.quadratic(), stream, steps=5)
        ms.simulate(build(0.1, message="gradient"), ms.problems.quadratic(), stream, steps=5)
    for build in (ms.fedres_erm, ms.fictitious_play):
        with pytest.raises(ms.MainstemError, match=f"^{build.__name__}: .* the sum of two parts"):
            ms.simulate(build(), ms.problems.quadratic(), stream, steps=5)
        content = {"problem": {"name": "quadratic"}, "federate": {"clients": 3}}
        with pytest.raises(ms.MainstemError, match=r"^Resolve: .* the sum of two parts"):
            parse(content | {"algorithm": {"name": build.__name__}})


def test_pairs_are_models():
    run = simulated(ms.fedres_sgd(0.01), world(5, 2))
    assert run.client_models.shape == (2, 5)
    assert isinstance(run.problem.shapes, Pair)


@pytest.mark.parametrize("variant", ["aligned", "on_arrival"])
def test_central_is_fedres_whose_clients_have_nothing_of_their_own(variant):
    """With local features of zero the own models never change."""

    def sample(key, t, k):
        x = random.normal(key, (3,))
        return (x, jnp.zeros(2)), x @ jnp.array([1.0, -1.0, 0.5])

    world = ms.streams.generated(sample, clients=4)
    chosen = {"steps": 30, "dtype": "float64", "network": ms.network(up=2, down=1)}
    both = [
        ms.simulate(make(0.02, variant=variant), ms.problems.personal(3, 2), world, **chosen)
        for make in (ms.central, ms.fedres_sgd)
    ]
    np.testing.assert_allclose(both[0].loss, both[1].loss, rtol=1e-12)
    assert both[0].loss[-1] < both[0].loss[0]


def test_an_own_step_of_0_is_refused_and_not_replaced():
    with pytest.raises(ms.MainstemError, match="own_step must be above 0, got 0"):
        ms.fedres_sgd(0.1, own_step=0)
