"""Adaptive federated optimisation (Reddi et al. 2021, Algorithm 2), one line each, against NumPy loops.

The server is given :math:`-\\Delta_t`, the clients' mean change reversed. The rules are optax's: they divide by
:math:`1 - \\beta^t` (Algorithm 2 does not), and FedAdagrad's :math:`\\tau` is inside the root.
"""

import numpy as np
import optax
import pytest

import mainstem as ms
from mainstem.errors import BadParameter

STEPS, CLIENTS, SIZE, LOCAL = 40, 4, 5, 0.3

ONE_LINE = {
    "FedAdagrad": (
        ms.fedogd(LOCAL, server=optax.adagrad(0.1)),
        ms.fedogd(LOCAL, server=ms.parts.optimizer("adagrad", learning_rate=0.1)),
    ),
    "FedAdam": (
        ms.fedogd(LOCAL, server=optax.adam(0.05)),
        ms.fedogd(LOCAL, server=ms.parts.optimizer("adam", learning_rate=0.05)),
    ),
    "FedYogi": (
        ms.fedogd(LOCAL, server=optax.yogi(0.05)),
        ms.fedogd(LOCAL, server=ms.parts.optimizer("yogi", learning_rate=0.05)),
    ),
}


class Adagrad:
    def __init__(self):
        self.squares = np.full(SIZE, 0.1)

    def move(self, g, t):
        self.squares = self.squares + g**2
        return -0.1 * g / np.sqrt(self.squares + 1e-7)


class Adam:
    def __init__(self):
        self.mean, self.square = np.zeros(SIZE), np.zeros(SIZE)

    def move(self, g, t):
        self.mean = 0.9 * self.mean + 0.1 * g
        self.square = 0.999 * self.square + 0.001 * g**2
        mean, square = self.mean / (1 - 0.9**t), self.square / (1 - 0.999**t)
        return -0.05 * mean / (np.sqrt(square) + 1e-8)


class Yogi:
    def __init__(self):
        self.mean, self.square = np.full(SIZE, 1e-6), np.full(SIZE, 1e-6)

    def move(self, g, t):
        self.mean = 0.9 * self.mean + 0.1 * g
        self.square = self.square - 0.001 * np.sign(self.square - g**2) * g**2
        mean, square = self.mean / (1 - 0.9**t), self.square / (1 - 0.999**t)
        return -0.05 * mean / (np.sqrt(square) + 1e-3)


RULES = {"FedAdagrad": Adagrad, "FedAdam": Adam, "FedYogi": Yogi}


@pytest.fixture(scope="module")
def world():
    draw = np.random.default_rng(5)
    features, target = draw.normal(size=(30, SIZE)), draw.normal(size=30)
    stream = ms.streams.arrays(features, target, clients=CLIENTS)
    return features, target, stream, ms.problems.linear(SIZE, intercept=False)


def loop(world, rule, period):
    """Local steps from the broadcast; every `period` steps the server steps along the mean change, reversed."""
    features, target, stream, _ = world
    w, state, merges = np.zeros(SIZE), rule(), 0
    local, losses = np.tile(w, (CLIENTS, 1)), []
    for t in range(1, STEPS + 1):
        rows = stream.places(0, t, t)[0]
        losses.append(np.mean([(features[row] @ w - target[row]) ** 2 / 2 for row in rows]))
        for k, row in enumerate(rows):
            local[k] -= LOCAL * (features[row] @ local[k] - target[row]) * features[row]
        if t % period == 0:
            merges += 1
            w = w + state.move(w - local.mean(axis=0), merges)
            local = np.tile(w, (CLIENTS, 1))
    return w, losses


@pytest.mark.parametrize("period", [1, 4])
@pytest.mark.parametrize("name", ONE_LINE)
def test_it_is_the_loop(world, name, period):
    _, _, stream, problem = world
    wanted, losses = loop(world, RULES[name], period)
    for algorithm in ONE_LINE[name]:
        synced = algorithm.replace(sync=ms.parts.every(period))
        run = ms.simulate(synced, problem, stream, steps=STEPS, dtype="float64")
        assert np.allclose(run.model, wanted, rtol=0, atol=1e-10)
        assert np.allclose(run.loss, losses, rtol=0, atol=1e-10)


def test_plain_gradient_descent_is_what_it_is_without_a_server(world):
    _, _, stream, problem = world
    settings = {"steps": STEPS, "dtype": "float64"}
    plain = ms.simulate(ms.fedogd(LOCAL), problem, stream, **settings)
    same = ms.simulate(ms.fedogd(LOCAL, server=optax.sgd(1.0)), problem, stream, **settings)
    assert np.allclose(plain.loss, same.loss, rtol=0, atol=1e-12)


def test_no_theorem_is_shown_for_it(world):
    _, _, stream, problem = world
    run = ms.simulate(ms.fedogd(0.01, server=optax.adam(0.1)), problem, stream, steps=5)
    with pytest.raises(ms.MainstemError, match="declares no family of theorems"):
        run.bound()


def test_a_schedule_is_a_step(world):
    _, _, stream, problem = world
    settings = {"steps": STEPS, "dtype": "float64"}
    scheduled = ms.simulate(ms.fedogd(lambda t: 0.5 / t**0.5), problem, stream, **settings)
    rule = ms.simulate(ms.fedogd(ms.parts.inverse_sqrt(0.5)), problem, stream, **settings)
    assert np.allclose(scheduled.loss, rule.loss, rtol=0, atol=1e-12)
    falling = optax.linear_schedule(0.5, 0.0, STEPS)
    run = ms.simulate(ms.fedomd(falling), problem, stream, **settings)
    assert np.isfinite(run.loss).all()


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (3, "fedogd: server must be an optax transformation or"),
        ("adam", "fedogd: server must be an optax transformation or"),
    ],
)
def test_refusals(server, message):
    with pytest.raises(BadParameter, match=message):
        ms.fedogd(0.1, server=server)


def test_a_rule_that_refuses_its_arguments_is_named():
    with pytest.raises(BadParameter, match=r"optimizer: adam refuses its arguments: .*speed"):
        ms.parts.optimizer("adam", speed=0.1)
