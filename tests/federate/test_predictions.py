"""Predictions that wait for their label: what they keep in memory."""

import asyncio

import numpy as np
import pytest

from mainstem.engines.federate.client import predictions, session
from mainstem.engines.federate.client.predictions import Predictions
from tests.federate.in_process import joined, run_content, serving

LARGE = {"name": "softmax", "features": 784, "classes": 10}  # 7,850 numbers
MODEL = 7850 * 4
FEW = 600


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(session, "CLOSE_TIMEOUT", 0.1)  # for uploads that nobody merges


def waiting(url, algorithm, count=FEW):
    """The bytes of the models of `count` predictions without labels, with learning in between."""
    rng = np.random.default_rng(0)

    async def lived():
        content = run_content({"name": algorithm, "step": 0.01}, LARGE, clients=3)  # never merges
        async with (
            serving(url, content) as (hub, _),
            await joined(url, hub, "0") as learner,
        ):
            for _ in range(count):
                learner.predict_one(rng.normal(size=784))
                await learner.learn_one(rng.normal(size=784), 1)
            found = learner.session._predictions
            return len(found), found.nbytes

    return asyncio.run(lived())


def test_they_share_the_model_of_a_broadcast(nats_server):
    assert waiting(nats_server.url, "fedogd") == (FEW, MODEL)


def test_models_of_ones_own_are_limited(nats_server, monkeypatch):
    monkeypatch.setattr(predictions, "MAX_BYTES", 100 * MODEL)
    count, nbytes = waiting(nats_server.url, "fedomd", 150)
    assert count == 101  # the newest has no copy of its model yet
    assert nbytes == 100 * MODEL


def test_the_oldest_is_forgotten_first(monkeypatch):
    monkeypatch.setattr(predictions, "MAX_PREDICTIONS", 3)
    known = Predictions(lambda client: np.array([client]))
    for n in range(5):
        known.add(bytes([n]), n, float(n))
    assert [known.pop(bytes([n]), 9) for n in range(5)] == [None, None, 2.0, 3.0, 4.0]
    assert (len(known), known.nbytes) == (0, 0)


@pytest.mark.parametrize("now", [7, 8])
def test_a_model_is_late_if_the_client_has_changed(now):
    known = Predictions(lambda client: np.array([client]))
    known.add(b"x", 7, 1.0)
    known.add(b"x", 7, 1.0)  # asked twice
    assert (known.pop(b"x", now) is None) == (now == 7)
    assert known.pop(b"x", now) is None
