"""The references of FedRes and dynamic FedAvg against the printed equations and by hand."""

import numpy as np
import pytest

from .dynamic_fedavg import dynamic_fedavg
from .fedres import (
    bandit,
    central,
    fedres_erm,
    fedres_sgd,
    independent,
    nearest_minimiser,
    project,
)

T, P, D, DL = 24, 3, 3, 2
UP = ([0, 0, 0], [2, 0, 5], [3, 3, 3], [1, 7, 0])
DOWN = ([0, 0, 0], [0, 4, 1], [2, 2, 2], [6, 0, 3])
LINKS = list(zip(UP, DOWN, strict=True))
VARIANTS = ("aligned", "undelayed", "on_arrival")


def data(seed, T=T, P=P):
    rng = np.random.default_rng(seed)
    xg = rng.normal(size=(T, P, D))
    xl = rng.normal(size=(T, P, DL))
    return xg, xl, rng.normal(size=(T, P))


def start(seed=5):
    rng = np.random.default_rng(seed)
    return {"w0": rng.normal(size=D), "v0": rng.normal(size=(P, DL))}


def equal(one, two, atol=1e-12):
    for name in ("shared", "own", "server"):
        np.testing.assert_allclose(one[name], two[name], rtol=0, atol=atol)


def printed(xg, xl, y, *, step, own_step, up, down, w0, v0, radius=None, variant="aligned"):
    """(7)-(8) with w_{t+1} on the left, and the displays of 3.2.1, by their time indices.

    w(s) and v[s] are w_s and w_{i,s}, with w_s = w_1 for s < 1; alpha = up, beta = down.
    """
    T, P = y.shape
    w = {1: np.array(w0)}
    v = {(k, 1): np.array(v0[k]) for k in range(P)}

    def late(s):
        return w[max(s, 1)]

    def error(s, k, model):
        return xg[s - 1, k] @ model + xl[s - 1, k] @ v[k, s] - y[s - 1, k]

    for t in range(1, T + 1):
        total = np.zeros(xg.shape[2])
        for k in range(P):
            s = t - up[k]
            if s >= 1:
                model = w[t] if variant == "on_arrival" else late(s - down[k])
                total += 2 * error(s, k, model) * xg[s - 1, k]
            s = t - up[k] - down[k] if variant == "aligned" else t
            v[k, t + 1] = v[k, t]
            if s >= 1:
                g = 2 * error(s, k, late(s - down[k])) * xl[s - 1, k]
                v[k, t + 1] = project(v[k, t] - own_step * g, radius)
        w[t + 1] = project(w[t] - step * total, radius)
    steps = range(1, T + 1)
    return {
        "shared": np.array([[late(t - down[k]) for k in range(P)] for t in steps]),
        "own": np.array([[v[k, t] for k in range(P)] for t in steps]),
        "server": np.array([w[t] for t in range(1, T + 2)]),
    }


# --- FedRes.SGD -------------------------------------------------------------------------------


def test_algorithm_5():
    xg, xl, y = data(0, P=1)
    run = fedres_sgd(xg, xl, y, step=0.05, own_step=0.05, up=[0], down=[0])
    w, v = np.zeros(D), np.zeros(DL)
    for t in range(T):
        np.testing.assert_allclose(run["shared"][t, 0], w, rtol=0, atol=1e-14)
        np.testing.assert_allclose(run["own"][t, 0], v, rtol=0, atol=1e-14)
        residual = y[t, 0] - w @ xg[t, 0] - v @ xl[t, 0]
        w, v = w + 0.05 * 2 * residual * xg[t, 0], v + 0.05 * 2 * residual * xl[t, 0]
        np.testing.assert_allclose(run["server"][t + 1], w, rtol=0, atol=1e-14)


def test_the_gradient_is_that_of_the_squared_loss():
    xg, xl, y = data(1, T=2)
    run = fedres_sgd(xg, xl, y, step=1.0, own_step=1.0, up=UP[0], down=DOWN[0], **start())
    w, v = start()["w0"], start()["v0"]

    def loss(w, v):
        return sum((y[0, k] - xg[0, k] @ w - xl[0, k] @ v[k]) ** 2 for k in range(P))

    h = 1e-6
    for j in range(D):
        e = h * np.eye(D)[j]
        slope = (loss(w + e, v) - loss(w - e, v)) / (2 * h)
        np.testing.assert_allclose(run["server"][1, j], w[j] - slope, atol=1e-7)
    for k in range(P):
        for j in range(DL):
            e = np.zeros((P, DL))
            e[k, j] = h
            slope = (loss(w, v + e) - loss(w, v - e)) / (2 * h)
            np.testing.assert_allclose(run["own"][1, k, j], v[k, j] - slope, atol=1e-7)


@pytest.mark.parametrize(("up", "down"), LINKS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("radius", [None, 0.2])
def test_the_printed_recursions(up, down, variant, radius):
    given = {"step": 0.02, "own_step": 0.03, "up": up, "down": down, "radius": radius}
    inside = {name: 0.05 * value for name, value in start().items()}  # (8) projects at every t
    given |= {"variant": variant, **inside}
    run = fedres_sgd(*data(2), **given)
    equal(run, printed(*data(2), **given))
    if radius is not None:
        for name in ("server", "own"):  # the projection was at work on both sides
            largest = np.linalg.norm(run[name], axis=-1).max()
            np.testing.assert_allclose(largest, radius, rtol=1e-14)


def test_without_delay_the_variants_agree_and_with_delay_they_do_not():
    given = {"step": 0.02, "own_step": 0.03, **start()}
    for up, down, same in ((UP[0], DOWN[0], True), (UP[1], DOWN[1], False)):
        runs = [
            fedres_sgd(*data(3), up=up, down=down, variant=variant, **given) for variant in VARIANTS
        ]
        for one, two in ((0, 1), (0, 2), (1, 2)):
            gap = np.abs(runs[one]["server"] - runs[two]["server"]).max()
            assert (gap < 1e-13) == same


@pytest.mark.parametrize(("up", "down"), LINKS)
def test_one_sample_makes_its_round_trip(up, down):
    """The sample of step s: server after s + a, both client models from step s + a + b + 1."""
    s = 6
    for k in range(P):
        present = np.zeros((T, P), dtype=bool)
        present[s - 1, k] = True
        given = {"step": 0.1, "own_step": 0.1, "up": up, "down": down, "present": present}
        run = fedres_sgd(*data(4), **given)
        moved = [t for t in range(T + 1) if np.any(run["server"][t] != 0)]
        assert moved == list(range(s + up[k], T + 1))
        moved = [t for t in range(1, T + 1) if np.any(run["own"][t - 1, k] != 0)]
        assert moved == list(range(s + up[k] + down[k] + 1, T + 1))
        for j in range(P):
            moved = [t for t in range(1, T + 1) if np.any(run["shared"][t - 1, j] != 0)]
            assert moved == list(range(s + up[k] + down[j] + 1, T + 1))
            assert j == k or not np.any(run["own"][:, j])
        for variant in ("undelayed", "on_arrival"):
            early = fedres_sgd(*data(4), variant=variant, **given)
            moved = [t for t in range(1, T + 1) if np.any(early["own"][t - 1, k] != 0)]
            assert moved == list(range(s + 1, T + 1))


@pytest.mark.parametrize(("up", "down"), LINKS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_mini_batches_are_rounds_with_the_mean_loss(up, down, variant):
    """Section 4: a period of p steps is one round of (10), delays rounded up to whole rounds.

    The mean of p squared losses with equal features is one with the mean label (up to a constant).
    """
    p = 3
    xg, xl, y = data(6, T=8)
    labels = np.random.default_rng(7).normal(size=(8, p, P))
    labels += (y - labels.mean(axis=1))[:, None]
    given = {"step": 0.02, "own_step": 0.03, "variant": variant, **start()}
    rounds = fedres_sgd(
        xg, xl, y, up=[-(-a // p) for a in up], down=[-(-b // p) for b in down], **given
    )
    steps = fedres_sgd(
        np.repeat(xg, p, axis=0),
        np.repeat(xl, p, axis=0),
        labels.reshape(8 * p, P),
        up=up,
        down=down,
        period=p,
        **given,
    )
    for offset in range(p):
        for name in ("shared", "own"):
            np.testing.assert_allclose(steps[name][offset::p], rounds[name], rtol=0, atol=1e-13)
    np.testing.assert_allclose(steps["server"][::p], rounds["server"], rtol=0, atol=1e-13)


def test_absent_samples_are_zero_losses_that_count_in_the_mean():
    xg, xl, y = data(8, T=4)
    present = np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]], dtype=bool)
    given = {"step": 0.1, "own_step": 0.2, "up": UP[0], "down": DOWN[0]}
    run = fedres_sgd(xg, xl, y, period=2, present=present, **given)
    w = 0.1 * (2 * y[0, 0] * xg[0, 0] + 2 * y[1, 2] * xg[1, 2]) / 2
    np.testing.assert_allclose(run["server"][2], w, atol=1e-15)
    np.testing.assert_allclose(run["own"][2, 0], 0.2 * 2 * y[0, 0] * xl[0, 0] / 2, atol=1e-15)
    assert not np.any(run["own"][2, 1])
    g = 2 * (xg[2, 1] @ w - y[2, 1]) / 2 * xg[2, 1]
    np.testing.assert_allclose(run["server"][4], w - 0.1 * g, atol=1e-15)
    zeroed = fedres_sgd(xg * present[..., None], xl * present[..., None], y, period=2, **given)
    equal(run, zeroed, atol=0)  # a message of zeros changes nothing either


def test_adagrad():
    """Without delays, by hand; no arrivals, or no sample, leave the squares alone."""
    xg, xl, y = data(9)
    given = {"step": None, "own_step": None, "adagrad": 0.3}
    present = np.ones((T, P), dtype=bool)
    present[4] = False
    present[10, 1] = False
    run = fedres_sgd(xg, xl, y, up=UP[0], down=DOWN[0], present=present, **given)
    w, v = np.zeros(D), np.zeros((P, DL))
    squares, own_squares = np.zeros(D), np.zeros((P, DL))
    for t in range(T):
        np.testing.assert_allclose(run["own"][t], v, rtol=0, atol=1e-13)
        residual = np.where(present[t], y[t] - xg[t] @ w - np.sum(xl[t] * v, axis=1), 0.0)
        g = -2 * residual @ xg[t]
        own_g = -2 * residual[:, None] * xl[t]
        squares += g**2
        own_squares += own_g**2
        w = w - 0.3 * g / np.sqrt(squares + 1e-8)
        v = v - 0.3 * own_g / np.sqrt(own_squares + 1e-8)
        np.testing.assert_allclose(run["server"][t + 1], w, rtol=0, atol=1e-13)
    # a first gradient of any size changes every coordinate by eta: after the delays only
    late = fedres_sgd(xg, xl, y, up=[4] * P, down=[2] * P, **given)
    assert not np.any(late["server"][:5])
    np.testing.assert_allclose(np.abs(late["server"][5]), 0.3, atol=1e-4)  # but for the floor
    assert not np.any(late["own"][:7])
    np.testing.assert_allclose(np.abs(late["own"][7]), 0.3, atol=1e-4)  # but for the floor


@pytest.mark.parametrize(("up", "down"), LINKS)
@pytest.mark.parametrize("period", [1, 3])
def test_central_is_fedres_without_local_features(up, down, period):
    xg, xl, y = data(10)
    given = {"step": 0.02, "up": up, "down": down, "period": period, "w0": start()["w0"]}
    equal(central(xg, y, **given), fedres_sgd(xg, xl[:, :, :0], y, own_step=0.0, **given))


def test_independent_is_fedres_with_one_client_each():
    xg, xl, y = data(11)
    run = independent(xg, xl, y, step=0.05, **start())
    for k in range(P):
        one = slice(k, k + 1)
        alone = fedres_sgd(
            *(a[:, one] for a in (xg, xl, y)),
            step=0.05,
            own_step=0.05,
            up=[0],
            down=[0],
            w0=start()["w0"],
            v0=start()["v0"][k],
        )
        np.testing.assert_allclose(run["shared"][:, one], alone["shared"], rtol=0, atol=1e-13)
        np.testing.assert_allclose(run["own"][:, one], alone["own"], rtol=0, atol=1e-13)


def test_example_2():
    """Half the clients need +v, half -v: the global model alone cannot do better than u^g."""
    rng = np.random.default_rng(12)
    steps, clients = 700, 4
    x = rng.normal(size=(steps, clients, 2))
    u, v = np.array([1.0, -0.5]), np.array([0.7, 0.7])
    sign = np.array([1, 1, -1, -1])
    y = x @ u + sign * (x @ v)
    links = {"up": [1] * clients, "down": [1] * clients}
    alone = central(x, y, step=0.002, **links)
    both = fedres_sgd(x, x, y, step=0.01, own_step=0.02, **links)
    tail = slice(-200, None)
    served = np.sum(x * alone["shared"], axis=-1)
    joint = np.sum(x * both["shared"], axis=-1) + np.sum(x * both["own"], axis=-1)
    np.testing.assert_allclose(alone["server"][-1], u, atol=0.15)
    assert np.mean((y - served)[tail] ** 2) > 0.8 * (v @ v)
    assert np.mean((y - joint)[tail] ** 2) < 1e-6


# --- the quadratic over the ball ----------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 4])
@pytest.mark.parametrize("radius", [None, 0.05, 0.5, 2.0, 50.0])
def test_the_ball_solution_satisfies_kkt(rank, radius):
    rng = np.random.default_rng(rank)
    kinds = set()
    for _ in range(40):
        frame = np.linalg.qr(rng.normal(size=(4, rank)))[0]
        X = rng.normal(size=(12, rank)) @ frame.T
        r = rng.normal(size=12) * rng.choice([0.1, 1.0, 5.0])
        current = project(rng.normal(size=4), radius)
        A, b = X.T @ X, X.T @ r
        u = nearest_minimiser(A, b, current, radius)
        scale = np.linalg.norm(A, 2) + np.linalg.norm(b)
        pull = b - A @ u  # minus half the gradient: = mu u, mu >= 0, and 0 inside
        mu = 0.0 if radius is None else max(0.0, pull @ u / (u @ u))
        np.testing.assert_allclose(pull, mu * u, rtol=0, atol=1e-12 * scale)
        if radius is not None:
            assert np.linalg.norm(u) <= radius * (1 + 1e-13)
            if mu > 1e-9 * scale:
                np.testing.assert_allclose(np.linalg.norm(u), radius, rtol=1e-12)
        # nearest to current: (current - u) is normal to the minimisers that the ball contains
        kinds.add((mu > 1e-9 * scale, radius is not None and np.linalg.norm(u) > radius - 1e-9))
        if mu <= 1e-9 * scale:
            null = np.linalg.svd(X)[2][rank:]
            others = [u + null.T @ (rng.normal(size=4 - rank) * 0.1) for _ in range(50)]
            if radius is None:
                others.append(current + np.linalg.pinv(A) @ (b - A @ current))
                np.testing.assert_allclose(u, others[-1], rtol=0, atol=1e-10)
            for other in others:
                if radius is None or np.linalg.norm(other) <= radius:
                    assert np.linalg.norm(u - current) <= np.linalg.norm(other - current) + 1e-9
    if radius == 0.5 and rank < 4:
        assert (True, True) in kinds  # the secular equation
    if radius == 2.0 and rank < 4:
        assert (False, True) in kinds  # the cut free part
        assert (False, False) in kinds


def test_the_ball_solution_by_hand():
    A, b = np.diag([1.0, 4.0]), np.array([3.0, 0.0])
    np.testing.assert_allclose(nearest_minimiser(A, b, np.zeros(2), 5.0), [3, 0], atol=1e-15)
    np.testing.assert_allclose(nearest_minimiser(A, b, np.ones(2), 2.0), [2, 0], atol=1e-15)
    flat = np.diag([0.0, 1.0])  # minimisers: (anything, 3)
    b = np.array([0.0, 3.0])
    current = np.array([7.0, 1.0])
    np.testing.assert_allclose(nearest_minimiser(flat, b, current, None), [7, 3], atol=1e-15)
    np.testing.assert_allclose(nearest_minimiser(flat, b, current, 8.0), [7, 3], atol=1e-15)
    np.testing.assert_allclose(nearest_minimiser(flat, b, current, 5.0), [4, 3], atol=1e-15)
    np.testing.assert_allclose(nearest_minimiser(flat, b, current, 2.0), [0, 2], atol=1e-15)
    zero = np.zeros((2, 2))
    np.testing.assert_allclose(nearest_minimiser(zero, np.zeros(2), current, None), current)


# --- FedRes.ERM and fictitious play -------------------------------------------------------------


def least(X, r, current):
    """The least squares solution nearest to current."""
    return current + np.linalg.lstsq(X, r - X @ current, rcond=1e-6)[0]


@pytest.mark.parametrize(("a", "b"), [(0, 0), (2, 0), (0, 3), (2, 3)])
@pytest.mark.parametrize("fictitious", [False, True])
def test_erm_by_its_time_indices(a, b, fictitious):
    """(2)-(3), or (5)-(6), with alpha = a, beta = b; w_s = w_1 for s < 1."""
    xg, xl, y = data(13)
    w = {1: start()["w0"]}
    v = {(k, 1): start()["v0"][k] for k in range(P)}
    for t in range(1, T + 1):
        w[t + 1] = w[t]
        if t > a:
            rows, targets = [], []
            for s in range(1, t - a + 1):
                for k in range(P):
                    partner = v[k, s] if fictitious else v[k, t - a]
                    rows.append(xg[s - 1, k])
                    targets.append(y[s - 1, k] - xl[s - 1, k] @ partner)
            w[t + 1] = least(np.array(rows), np.array(targets), w[t])
        for k in range(P):
            rows, targets = [], []
            for s in range(1, t + 1):
                partner = w[max(s - b if fictitious else t + 1 - b, 1)]
                rows.append(xl[s - 1, k])
                targets.append(y[s - 1, k] - xg[s - 1, k] @ partner)
            v[k, t + 1] = least(np.array(rows), np.array(targets), v[k, t])
    run = fedres_erm(
        xg, xl, y, radius=None, up=[a] * P, down=[b] * P, fictitious=fictitious, **start()
    )
    steps = range(1, T + 1)
    expected = {
        "shared": np.array([[w[max(t - b, 1)] for k in range(P)] for t in steps]),
        "own": np.array([[v[k, t] for k in range(P)] for t in steps]),
        "server": np.array([w[t] for t in range(1, T + 2)]),
    }
    equal(run, expected, atol=1e-8)


@pytest.mark.parametrize("fictitious", [False, True])
def test_erm_with_a_delay_per_client(fictitious):
    """A client whose messages never arrive is not in (3); one that never fetches solves with w_1."""
    xg, xl, y = data(14)
    given = {"radius": 1.5, "fictitious": fictitious, "w0": start()["w0"], "v0": start()["v0"]}
    run = fedres_erm(xg, xl, y, up=[0, T, 3], down=[0, T, 0], **given)
    pair = {**given, "v0": start()["v0"][[0, 2]]}
    other = fedres_erm(*(z[:, [0, 2]] for z in (xg, xl, y)), up=[0, 3], down=[0, 0], **pair)
    np.testing.assert_allclose(run["server"], other["server"], rtol=0, atol=1e-13)
    np.testing.assert_allclose(run["own"][:, [0, 2]], other["own"], rtol=0, atol=1e-13)
    alone = fedres_erm(
        *(z[:, [1]] for z in (xg, xl, y)), up=[T], down=[T], **given | {"v0": start()["v0"][[1]]}
    )
    np.testing.assert_allclose(run["own"][:, 1], alone["own"][:, 0], rtol=0, atol=1e-13)
    assert np.all(run["shared"][:, 1] == start()["w0"])
    for name in ("server", "own"):
        norms = np.linalg.norm(
            run[name][1:][:, [0, 2]] if name == "own" else run[name][1:], axis=-1
        )
        assert norms.max() <= 1.5 * (1 + 1e-12)


def test_appendix_c():
    """From (1, 0), (1, 0): ERM and SGD find (0, 1), (0, 1); fictitious play is stuck."""
    steps = 500
    distance = {"erm": [], "sgd": [], "fictitious": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(2, steps))
        noise = rng.normal(size=steps) * np.sqrt(0.25)
        xg = np.stack([a + noise, b], axis=1)[:, None]
        xl = np.stack([1 - a, 1 - b], axis=1)[:, None]
        y = np.ones((steps, 1))
        given = {"up": [0], "down": [0], "w0": [1.0, 0.0], "v0": [1.0, 0.0]}
        runs = {
            "erm": fedres_erm(xg, xl, y, radius=None, **given),
            "sgd": fedres_sgd(xg, xl, y, step=0.05, own_step=0.05, **given),
            "fictitious": fedres_erm(xg, xl, y, radius=None, fictitious=True, **given),
        }
        for name, run in runs.items():
            distance[name].append(np.linalg.norm(run["server"][-1] - [0, 1]))
    assert max(distance["erm"]) < 1e-3
    assert max(distance["sgd"]) < 0.25
    assert np.median(distance["fictitious"]) > 0.5


# --- the bandit ---------------------------------------------------------------------------------


def test_bandit():
    """Section 5.1, one round after the other."""
    A = 4
    rng = np.random.default_rng(15)
    xg = rng.normal(size=(T, P, A, D))
    xl = rng.normal(size=(T, P, A, DL))
    rewards = rng.uniform(size=(T, P, A))
    explore = rng.uniform(size=(T, P)) < 0.3
    explore[:3] = False
    uniform = rng.integers(A, size=(T, P))
    given = {"explore": explore, "uniform_actions": uniform, "step": 0.05, "own_step": 0.1}
    run = bandit(xg, xl, rewards, **given)
    w, v = np.zeros(D), np.zeros((P, DL))
    for t in range(T):
        total = np.zeros(D)
        moved = v.copy()
        for k in range(P):
            scores = xg[t, k] @ w + xl[t, k] @ v[k]
            a = uniform[t, k] if explore[t, k] else np.argmax(scores)
            assert run["actions"][t, k] == a
            np.testing.assert_allclose(run["shared"][t, k], w, rtol=0, atol=1e-13)
            np.testing.assert_allclose(run["own"][t, k], v[k], rtol=0, atol=1e-13)
            if explore[t, k]:
                residual = rewards[t, k, a] - scores[a]
                total += 2 * residual * xg[t, k, a]
                moved[k] = v[k] + 0.1 * 2 * residual * xl[t, k, a]
        w, v = w + 0.05 * total, moved
        np.testing.assert_allclose(run["server"][t + 1], w, rtol=0, atol=1e-13)
    assert not np.any(run["actions"][:3])  # ties: the first
    blind = np.where(np.eye(A, dtype=bool)[uniform] & explore[:, :, None], rewards, np.nan)
    again = bandit(xg, xl, np.nan_to_num(blind, nan=7.0), **given)
    np.testing.assert_array_equal(run["actions"], again["actions"])  # sees no other reward


# --- dynamic FedAvg -----------------------------------------------------------------------------

CENTRES = np.array([[0.0, 1.0], [2.0, 0.0], [-1.0, 4.0]])
EPOCHS = [1, 3, 8]


def pull(w, t, k, index):
    """The gradient of |w - c_k|^2 / 2: every sample of agent k is c_k."""
    return w - CENTRES[k]


def whole(t, k, e):
    return np.arange(2)


def everyone(T):
    return [[0, 1, 2] for _ in range(T)]


@pytest.mark.parametrize("incremental", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
def test_the_epochs_bias_the_limit_unless_normalised(incremental, normalised):
    mu = 1e-3
    run = dynamic_fedavg(
        pull,
        [5.0, 5.0],
        T=1000,
        participants=everyone(1000),
        epochs=EPOCHS,
        batches=lambda t, k, e: [0],
        step=mu,
        incremental=incremental,
        normalised=normalised,
    )
    small = np.array([1.0, 1.0, 1.0] if normalised else EPOCHS)  # as mu goes to 0
    weights = mu * small
    if incremental:  # exactly: 1 - (1 - mu_k)^E_k of the way to c_k
        each = np.array([mu / E if normalised else mu for E in EPOCHS])
        weights = 1 - (1 - each) ** np.array(EPOCHS)
    limit = weights @ CENTRES / weights.sum()
    left = (1 - weights.mean()) ** 1000
    expected = limit + left * (np.array([5.0, 5.0]) - limit)
    np.testing.assert_allclose(run["server"][-1], expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(limit, small @ CENTRES / small.sum(), rtol=0, atol=0.01)
    biased = np.array(EPOCHS) @ CENTRES / sum(EPOCHS)
    assert np.linalg.norm(biased - CENTRES.mean(axis=0)) > 0.5  # the two limits differ


def test_full_batches_and_everyone_are_gradient_descent():
    """(3): the plain form does not notice how often an agent repeats the whole batch."""
    given = {"T": 20, "participants": everyone(20), "batches": whole, "step": 0.3}
    plain = dynamic_fedavg(pull, [5.0, 5.0], epochs=EPOCHS, incremental=False, **given)
    w = np.array([5.0, 5.0])
    for t in range(20):
        np.testing.assert_allclose(plain["server"][t], w, rtol=0, atol=1e-13)
        w = w - 0.3 * np.mean([w - c for c in CENTRES], axis=0)
    once = dynamic_fedavg(pull, [5.0, 5.0], epochs=[1, 1, 1], **given)
    np.testing.assert_allclose(plain["server"], once["server"], rtol=0, atol=1e-13)
    moving = dynamic_fedavg(pull, [5.0, 5.0], epochs=EPOCHS, **given)
    assert np.abs(moving["server"] - plain["server"]).max() > 1e-3


def test_batches_and_participants_are_those_asked_for():
    """Algorithm 1 on scalar quadratics x_b^2 (w - x_b)^2 / 2, drawn at every step."""
    rng = np.random.default_rng(16)
    steps, agents, samples = 12, 4, 9
    x = rng.normal(size=(steps + 1, agents, samples))
    epochs = [1, 2, 3, 5]
    drawn = {}
    for t in range(1, steps + 1):
        for k in range(agents):
            for e in range(epochs[k]):
                drawn[t, k, e] = rng.choice(samples, size=2 + k, replace=False)
    participants = [list(rng.choice(agents, size=2, replace=False)) for _ in range(steps)]
    participants[5] = []
    run = dynamic_fedavg(
        lambda w, t, k, b: x[t, k, b] ** 2 * (w - x[t, k, b]),
        [1.0],
        T=steps,
        participants=participants,
        epochs=epochs,
        batches=lambda t, k, e: drawn[t, k, e],
        step=0.4,
    )
    w = 1.0
    for t in range(1, steps + 1):
        models = []
        for k in participants[t - 1]:
            model = w
            for e in range(epochs[k]):
                z = x[t, k][drawn[t, k, e]]
                model -= 0.4 / epochs[k] * np.mean(z**2 * (model - z))
            models.append(model)
        w = np.mean(models) if models else w
        np.testing.assert_allclose(run["server"][t], [w], rtol=0, atol=1e-14)
    assert run["server"][6] == run["server"][5]  # a mean of nothing is not zero
