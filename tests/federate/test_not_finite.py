"""A client whose numbers overflow says so, begins anew from the newest broadcast, and disturbs nobody."""

import asyncio

import numpy as np
import pytest

from mainstem.errors import NotFinite
from tests.federate.in_process import joined, run_content, serving, until

FEDOMD = {"name": "fedomd", "step": 0.1}
LINEAR = {"name": "linear", "features": 2, "intercept": False}
X, Y = np.array([1.0, 2.0], np.float32), np.float32(1.0)
HUGE = np.full(2, 3e38, np.float32)  # finite, but not its square


async def learns(learner, count, x=X):
    for _ in range(count):
        await learner.learn_one(x, Y)


@pytest.mark.parametrize("pace", ["lockstep", "free"])
def test_it_begins_anew_and_the_others_go_on(pace, nats_server, tmp_path):
    async def lived():
        content = run_content(FEDOMD, LINEAR, pace=pace)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as good,
            await joined(nats_server.url, hub, "1", folder=tmp_path / "one") as bad,
        ):
            await asyncio.gather(learns(good, 3), learns(bad, 3))
            await until(lambda: hub.aggregator.records.received.min() == 3)
            found, _ = await asyncio.gather(
                asyncio.wait_for(learns(bad, 1, HUGE), 20),
                asyncio.wait_for(learns(good, 1), 20),
                return_exceptions=True,
            )
            assert isinstance(found, NotFinite), found
            assert "client 1" in str(found)
            assert "at sample 4" in str(found)
            assert np.isfinite(bad.predict_one(X))
            assert np.isfinite(bad.loss)
            await asyncio.gather(learns(good, 3), learns(bad, 3))
            await until(lambda: hub.aggregator.records.received.min() == 7)
            assert np.isfinite(hub.aggregator.model).all()
            assert hub.aggregator.records.refused[1].total() == 0
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "1", folder=tmp_path / "one") as again,
        ):
            assert again.step == 7
            assert np.isfinite(again.predict_one(X))

    asyncio.run(lived())


def test_a_prediction_that_is_not_finite_is_no_prediction(nats_server):
    async def lived():
        content = run_content(FEDOMD, LINEAR, clients=1, gather=1)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as one,
        ):
            await one.learn_one(X, np.float32(100))
            await until(lambda: hub.aggregator.version == 1)
            with pytest.raises(NotFinite, match="its prediction is not finite"):
                one.predict_one(HUGE)
            assert np.isfinite(one.predict_one(X))

    asyncio.run(lived())
