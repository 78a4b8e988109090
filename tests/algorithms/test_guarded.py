"""The guard: equal to a NumPy loop, harmless without faults, and one bad site of four harms nobody."""

import numpy as np
import pytest

import mainstem as ms
from benchmarks.guard import ALGORITHMS, FEATURES, STEPS, honest_loss, lying, rows, stream


def followed(usual, size, share):
    """The next value of a quantile that is followed."""
    if size == 0:
        return usual
    if usual == 0:
        return size
    if size > usual:
        return min(usual * np.exp(0.5 * share), size)
    return max(usual * np.exp(0.5 * (share - 1)), size)


def limits(high, factor):
    """For each client, `factor` times the upper median of the others' quantiles."""
    found = []
    for k in range(len(high)):
        others = sorted(value for j, value in enumerate(high) if j != k and value > 0)
        found.append(factor * others[len(others) // 2] if others else 0.0)
    return found


def loop(x, y, step, factor=2.0, hold=3.0):
    """FedOGD with the guard on squared losses, in plain NumPy."""
    steps, clients, features = x.shape
    w, high, middle = np.zeros(features), np.zeros(clients), np.zeros(clients)
    losses, clipped, held = [], np.zeros(clients, int), np.zeros(clients, int)
    for t in range(steps):
        errors = x[t] @ w - y[t]
        losses.append(np.mean(errors**2) / 2)
        gradients = errors[:, None] * x[t]
        sizes = np.linalg.norm(gradients, axis=1)
        high = np.array([followed(high[k], sizes[k], 0.95) for k in range(clients)])
        middle = np.array([followed(middle[k], sizes[k], 0.5) for k in range(clients)])
        limit = limits(high, factor)
        total, kept = np.zeros(features), 0
        for k in range(clients):
            high[k], middle[k] = min(high[k], 100 * limit[k]), min(middle[k], 100 * limit[k])
        for k in range(clients):
            if middle[k] > hold * limit[k]:
                held[k] += 1
                continue
            kept += 1
            clipped[k] += sizes[k] > limit[k]
            total += gradients[k] * min(1, limit[k] / max(sizes[k], 1e-300))
        w = w - step / max(kept, 1) * total
    return np.array(losses), w, clipped, held


@pytest.mark.parametrize("faults", [1.0, 8.0, 1e3])
@pytest.mark.parametrize("plain", [False, True])
def test_it_is_the_loop(faults, plain):
    x, y = rows(0, faults)
    losses, w, clipped, held = loop(x, y, 0.05)
    problem = ms.problems.linear(FEATURES, intercept=False)
    algorithm = ms.guarded(ms.fedogd(step=0.05))
    run = ms.simulate(algorithm, problem, stream(x, y), steps=STEPS, dtype="float64", plain=plain)
    np.testing.assert_allclose(run.loss, losses, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.ravel(run.model), w, rtol=1e-10, atol=1e-10)
    assert faults == 1 or clipped[-1] + held[-1] > STEPS / 2


@pytest.mark.filterwarnings("ignore::mainstem.errors.Diverged")  # of the faulty site's own loss
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(
    "fault", [50.0, *(pytest.param(f, marks=pytest.mark.slow) for f in (8.0, 1e3, 1e15))]
)
def test_a_wrong_unit_of_one_site_harms_nobody_else(name, fault):
    """Without the guard, all of these destroy the model of all."""
    x, y = rows(1)
    alone = honest_loss(ALGORITHMS[name], x[:, :-1], y[:, :-1])
    x, y = rows(1, fault)
    assert honest_loss(ms.guarded(ALGORITHMS[name]), x, y) < 1.5 * alone
    assert not honest_loss(ALGORITHMS[name], x, y) < 1.5 * alone


@pytest.mark.parametrize(
    "name", ["fedogd", *(pytest.param(n, marks=pytest.mark.slow) for n in ("ofediq", "fedomd"))]
)
@pytest.mark.parametrize("lie", ["1e30", "largest", "not a number"])
def test_messages_of_any_size_harm_nobody_else(name, lie):
    x, y = rows(1)
    alone = honest_loss(ALGORITHMS[name], x[:, :-1], y[:, :-1])
    assert honest_loss(ms.guarded(lying(ALGORITHMS[name], lie)), x, y) < 1.5 * alone
