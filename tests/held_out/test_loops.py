"""Checks of the loops against closed forms and against loops without a network."""

import numpy as np
import pytest

from .instances import drawn, personal
from .loops import run
from .parts import on_ball, rate
from .problems import gradient, own_gradient, shared_gradient

STEP = {"kind": "inverse_sqrt", "scale": 0.1}


def test_gradients_without_delay_equal_a_loop_without_a_network():
    rng = np.random.default_rng(3)
    problem = {"name": "logistic", "ridge": 0.1, "intercept": True}
    steps, clients, period = 12, 4, 3
    data, size = drawn(problem, rng, (steps, clients))
    present = rng.random((steps, clients)) < 0.8
    heard = rng.random((steps, clients)) < 0.5
    weight = rng.uniform(1.0, 3.0, size=clients)
    start = rng.normal(size=size)
    instance = {
        "steps": steps,
        "clients": clients,
        "problem": problem,
        "data": {**data, "present": present},
        "start": start,
        "algorithm": {"name": "send_gradients", "step": STEP},
        "sync": np.arange(1, steps + 1) % period == 0,
        "heard": heard,
        "weight": weight,
        "scale": 4.0,
    }
    got = run(instance)
    w = start
    for first in range(0, steps, period):
        last = first + period
        total = np.zeros(size)
        for k in range(clients):
            theta, unsent = w, np.zeros(size)
            for i in range(first, last):
                np.testing.assert_allclose(got["models"][i, k], w, atol=1e-13)
                if present[i, k]:
                    g = gradient(problem, theta, [(data["x"][i, k], data["y"][i, k])])
                    theta, unsent = theta - rate(STEP, i + 1) * g, unsent + g
            if heard[last - 1, k]:
                total += weight[k] * unsent
        w = w - rate(STEP, last) / 4.0 * total
        np.testing.assert_allclose(got["server"][last], w, atol=1e-13)
    np.testing.assert_array_equal(got["uploads"], heard.sum(1) * instance["sync"])


def test_models_without_delay_equal_a_loop_without_a_network():
    rng = np.random.default_rng(4)
    problem = {"name": "linear", "ridge": 0.1, "intercept": False}
    data, size = drawn(problem, rng, (10, 3))
    sync = np.array([0, 1, 0, 0, 1, 1, 0, 0, 0, 1], dtype=bool)
    box = {"map": "euclidean", "domain": {"name": "box", "low": -0.2, "high": 0.2}}
    got = run(
        {
            "steps": 10,
            "clients": 3,
            "problem": problem,
            "data": data,
            "start": np.zeros(size),
            "algorithm": {"name": "send_models", "step": STEP, "mirror": box},
            "sync": sync,
        }
    )
    x = np.zeros((3, size))
    for i in range(10):
        np.testing.assert_allclose(got["models"][i], x, atol=1e-13)
        for k in range(3):
            g = gradient(problem, x[k], [(data["x"][i, k], data["y"][i, k])])
            x[k] = np.clip(x[k] - rate(STEP, i + 1) * g, -0.2, 0.2)
        if sync[i]:
            x[:] = x.mean(0)


@pytest.mark.parametrize(
    ("incremental", "normalised"), [(True, True), (False, True), (True, False)]
)
def test_dynamic_fedavg_on_quadratics_has_a_closed_form(incremental, normalised):
    rng = np.random.default_rng(5)
    targets = rng.normal(size=(6, 3, 4, 2))
    epochs = np.array([1, 2, 5])
    algorithm = {
        "name": "dynamic_fedavg",
        "step": {"kind": "constant", "value": 0.3},
        "epochs": epochs,
        "incremental": incremental,
        "normalised": normalised,
    }
    got = run(
        {
            "steps": 6,
            "clients": 3,
            "problem": {"name": "quadratic"},
            "data": {"y": targets},
            "start": np.zeros(2),
            "algorithm": algorithm,
        }
    )
    length = 0.3 / epochs if normalised else np.full(3, 0.3)
    kept = (1 - length) ** epochs if incremental else 1 - length * epochs
    w = np.zeros(2)
    for i in range(6):
        middle = targets[i].mean(1)
        w = np.mean(middle + kept[:, None] * (w - middle), axis=0)
        np.testing.assert_allclose(got["server"][i + 1], w, atol=1e-13)


@pytest.mark.parametrize("variant", ["aligned", "on_arrival", "undelayed"])
@pytest.mark.parametrize(("up", "down"), [([0, 0, 0], [0, 0, 0]), ([0, 2, 1], [1, 0, 3])])
def test_fedres_sgd_equals_its_equations(variant, up, down):
    rng = np.random.default_rng(6)
    own_step = {"kind": "inverse_time", "sigma": 10.0, "shift": 2.0}
    instance = personal(rng, name="fedres_sgd", step=STEP, own_step=own_step, variant=variant)
    instance |= {"up": np.array(up), "down": np.array(down)}
    instance["start"] = (np.array([0.3, -0.2]), np.array([0.1, 0.4, 0.2]))
    instance["algorithm"]["radius"] = 0.55
    got = run(instance)
    data = instance["data"]
    server = {1: instance["start"][0]}
    own = [{1: instance["start"][1]} for _ in range(3)]
    for t in range(1, 10):
        used = {(i, s): server[max(1, s - down[i])] for i in range(3) for s in range(1, t + 1)}
        total = np.zeros(2)
        for i in range(3):
            np.testing.assert_allclose(got["shared"][t - 1, i], used[i, t], atol=1e-13)
            np.testing.assert_allclose(got["own"][t - 1, i], own[i][t], atol=1e-13)
            s = t - up[i]
            if s >= 1:
                at = server[t] if variant == "on_arrival" else used[i, s]
                partial = data["xl"][s - 1, i] @ own[i][s]
                total += shared_gradient(at, partial, data["xg"][s - 1, i], data["y"][s - 1, i])
            s = t - up[i] - down[i] if variant == "aligned" else t
            own[i][t + 1] = own[i][t]
            if s >= 1:
                xg, xl, y = (data[name][s - 1, i] for name in ("xg", "xl", "y"))
                merged = t - down[i] if variant == "aligned" else t
                g = own_gradient(used[i, s], own[i][s], xg, xl, y)
                own[i][t + 1] = on_ball(own[i][t] - rate(own_step, merged) * g, 0.55)
        server[t + 1] = on_ball(server[t] - rate(STEP, t) * total, 0.55)
        np.testing.assert_allclose(got["server"][t], server[t + 1], atol=1e-13)


def test_a_period_of_fedres_is_one_step_on_the_mean_loss():
    rng = np.random.default_rng(7)
    step = {"kind": "constant", "value": 0.1}
    instance = personal(rng, name="fedres_sgd", step=step, own_step=step, period=3, radius=None)
    instance["sync"] = np.arange(1, 10) % 3 == 0
    instance["data"]["present"] = np.ones((9, 3), dtype=bool)
    instance["data"]["present"][:3, 1] = False
    got = run(instance)
    data, (w, v) = instance["data"], instance["start"]
    g = [own_gradient(w, v, data["xg"][i, 0], data["xl"][i, 0], data["y"][i, 0]) for i in range(3)]
    np.testing.assert_allclose(got["own"][3, 0], v - 0.1 * np.mean(g, axis=0), atol=1e-13)
    np.testing.assert_array_equal(got["own"][3, 1], v)
    np.testing.assert_array_equal(got["uploads"], [0, 0, 2, 0, 0, 3, 0, 0, 3])


@pytest.mark.parametrize("name", ["fedres_erm", "fictitious_play"])
def test_best_responses_equal_their_normal_equations(name):
    instance = personal(np.random.default_rng(8), steps=8, name=name)
    got = run(instance)
    xg, xl, y = (instance["data"][key] for key in ("xg", "xl", "y"))
    erm = name == "fedres_erm"
    for t in range(4, 8):  # from here on the minimisers are unique
        shared = [got["server"][t]] * t if erm else list(got["server"][:t])
        for i in range(3):
            errors = [
                y[s, i] - xg[s, i] @ shared[s] - xl[s, i] @ got["own"][t, i] for s in range(t)
            ]
            np.testing.assert_allclose(np.array(errors) @ xl[:t, i], 0.0, atol=1e-10)  # (2), (5)
        total = np.zeros(2)
        for i in range(3):
            for s in range(t):
                own = got["own"][t - 1 if erm else s, i]
                total += (y[s, i] - xg[s, i] @ got["server"][t] - xl[s, i] @ own) * xg[s, i]
        np.testing.assert_allclose(total, 0.0, atol=1e-10)  # (3), (6)


def test_links_serve_each_message_once_and_only_at_syncs():
    rng = np.random.default_rng(9)
    sync = np.array([1, 0, 1, 0, 0, 1, 0, 1, 1], dtype=bool)
    instance = {
        "steps": 9,
        "clients": 2,
        "problem": {"name": "quadratic"},
        "data": {"y": rng.normal(size=(9, 2, 2))},
        "start": np.zeros(2),
        "algorithm": {"name": "send_gradients", "step": STEP},
        "sync": sync,
        "up": np.array([0, 2]),
        "down": np.array([1, 0]),
    }
    got = run(instance)
    moved = np.any(np.diff(got["server"], axis=0) != 0, axis=1)
    np.testing.assert_array_equal(moved, sync)
    # Client 0 downloads what was made at u at the first sync >= u + 1: the broadcast before.
    latest = {3: 1, 6: 3, 8: 6, 9: 8}
    for t in range(1, 9):
        u = max((made for at, made in latest.items() if at <= t), default=0)
        np.testing.assert_array_equal(got["models"][t, 0], got["server"][u])
    # Client 1's message of step 1 is merged at 3 (1 + 2), that of 3 at 6, that of 6 at 8.
    only_late = instance | {"heard": np.tile([False, True], (9, 1))}
    moved = np.any(np.diff(run(only_late)["server"], axis=0) != 0, axis=1)
    np.testing.assert_array_equal(np.flatnonzero(moved) + 1, [3, 6, 8])
