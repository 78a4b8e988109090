"""A learner inside River's own evaluation, unchanged."""

import asyncio
import threading

import numpy as np
import pytest
from river import checks, datasets, evaluate, metrics

import mainstem as ms
from mainstem.errors import MainstemError
from tests.federate.in_process import run_content, serving

STEP = 0.1


class Serving:
    """A hub in a separate thread."""

    def __init__(self, url, content):
        self.content, self.url = content, url
        self._ready, self._over = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self):
        self._loop = asyncio.get_running_loop()
        async with serving(self.url, self.content) as (hub, _):
            self.hub = hub
            self._ready.set()
            await self._over.wait()

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(30)
        return self.hub

    def __exit__(self, *error):
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()


def followed(data, delay):
    """The accuracy of a plain loop: labels come so many samples later, slopes are where the answer was given."""
    model, open_, right = np.zeros(10), [], 0
    for x, y in data:
        z = np.array([*(x[name] for name in sorted(x)), 1.0])
        right += (model @ z > 0) == y
        open_.append((z, y, model))
        if len(open_) > delay:
            z, y, then = open_.pop(0)
            model = model - STEP * (1 / (1 + np.exp(-then @ z)) - y) * z
    return right / len(data)


@pytest.mark.parametrize("delay", [None, 20])
def test_progressive_validation_drives_a_classifier(delay, nats_server):
    content = run_content(
        {"name": "fedogd", "step": STEP},
        {"name": "logistic", "features": 9},
        clients=1,
        pace="lockstep",
    )
    data = list(datasets.Phishing().take(400))
    with (
        Serving(nats_server.url, content) as hub,
        ms.join(nats_server.url, run=hub.document.rules.run, client="0") as learner,
    ):
        score = evaluate.progressive_val_score(
            data, learner.as_river(), metrics.Accuracy(), delay=delay
        )
        assert learner.step == len(data)
    assert abs(score.get() - followed(data, delay or 0)) < 0.01


def test_progressive_validation_drives_a_regressor(nats_server):
    content = run_content(
        {"name": "fedogd", "step": 0.1},
        {"name": "linear", "features": 2},
        clients=1,
        pace="lockstep",
    )
    draw = np.random.default_rng(0)
    rows = [({"a": a, "b": b}, a - 2 * b) for a, b in draw.normal(size=(400, 2))]
    with Serving(nats_server.url, content) as hub:
        with ms.join(nats_server.url, run=hub.document.rules.run, client="0") as learner:
            score = evaluate.progressive_val_score(rows, learner.as_river(), metrics.MAE())
            assert learner.step == len(rows)
        assert score.get() < 1.0


COPYING = {  # checks of River that copy or pickle the estimator
    "check_clone_changes_memory_addresses",
    "check_clone_is_idempotent",
    "check_clone_is_independent",
    "check_clone_same_class",
    "check_no_state_aliasing_with_input",
    "check_pickling",
    "check_pickling_supports_roundtrip",
    "check_repr_roundtrips_clone",
    "check_shuffle_features_no_impact",
}


@pytest.mark.parametrize(
    "problem",
    [
        {"name": "logistic", "features": 64},
        {"name": "linear", "features": 64},
    ],
    ids=str,
)
@pytest.mark.slow
def test_rivers_own_checks_hold(problem, nats_server):
    """All but those that copy or pickle the live connection; these say what to do instead."""
    step = 1e-4 if problem["name"] == "logistic" else 1e-13  # a longer one diverges on River's rows
    content = run_content(
        {"name": "fedogd", "step": step}, problem, clients=1, features="hashed", gather=1
    )
    with (
        Serving(nats_server.url, content) as hub,
        ms.join(nats_server.url, run=hub.document.rules.run, client="0") as learner,
    ):
        held, refused = set(), {}
        for check in checks.yield_checks(learner.as_river()):
            try:
                check(learner.as_river())
            except MainstemError as error:
                refused[check.__name__] = str(error)
            else:
                held.add(check.__name__)
    assert set(refused) <= COPYING  # an older River checks fewer
    assert all("join the run as another client" in text for text in refused.values())
    assert len(held) >= 12
    assert {"check_learn_one", "check_emerging_features", "check_disappearing_features"} <= held
