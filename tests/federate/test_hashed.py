"""Features with any keys over NATS: equal to the simulation, and on a CSV with words."""

import asyncio
import json

import numpy as np
import pytest

import mainstem as ms
from mainstem.engines.federate.client.sample_sources import Columns, feed
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.errors import BadData, BadParameter, BadSpec
from tests.federate.in_process import joined, run_content, serving

T = 12
ALGORITHM, PROBLEM = {"name": "fedogd", "step": 0.3}, {"name": "logistic", "features": 16}
ROWS = [{"heat": n / 5, "kind": "xyz"[n % 3], f"only {n}": 1} for n in range(2 * T)]
LABELS = [n % 3 == 0 for n in range(2 * T)]


def test_lockstep_equals_the_simulation(nats_server):
    async def lived():
        content = run_content(
            ALGORITHM, PROBLEM, pace="lockstep", dtype="float64", features="hashed"
        )
        async with serving(nats_server.url, content) as (hub, _):

            async def client(k):
                async with await joined(nats_server.url, hub, str(k)) as learner:
                    for t in range(T):
                        await learner.learn_one(ROWS[k * T + t], LABELS[k * T + t])

            await asyncio.gather(client(0), client(1))
            return np.asarray(hub.aggregator.model), hub.aggregator.records.losses.sum()

    model, loss = asyncio.run(lived())
    stream = ms.streams.hashed(ROWS, LABELS, 16, clients=2, deal=ms.streams.in_time())
    algorithm = ms.guarded(ms.fedogd(0.3))
    run = ms.simulate(algorithm, ms.problems.logistic(16), stream, steps=T, dtype="float64")
    np.testing.assert_allclose(model, run.models["server"], atol=1e-9)
    assert loss / 2 == pytest.approx(run.loss.sum(), abs=1e-6)


def test_a_file_with_words(tmp_path):
    path = tmp_path / "site.csv"
    path.write_text("heat,kind,bad\n1.5,x,0\n,y,1\n")
    assert list(feed(str(path), columns=Columns(words=True))) == [
        ({"heat": 1.5, "kind": "x"}, 0),
        ({"kind": "y"}, 1),
    ]
    with pytest.raises(BadData, match="row 1, kind: 'x' is no number"):
        next(feed(str(path)))


def test_the_document_says_so_and_travels():
    document = parse(run_content(ALGORITHM, PROBLEM, features="hashed"))
    again = parse(json.loads(json.dumps(document.content)))
    assert again.rules.features == "hashed"
    assert again.digest == document.digest


def test_what_cannot_be_hashed_is_refused():
    with pytest.raises(BadParameter, match="features must be one of hashed"):
        parse(run_content(ALGORITHM, PROBLEM, features="hash"))
    cnn = {"name": "cnn"}
    with pytest.raises(BadSpec, match="hashed features are a vector"):
        parse(run_content(ALGORITHM, cnn, features="hashed"))


def test_a_row_that_does_not_fit_is_refused_and_loses_nothing(nats_server):
    async def lived():
        content = run_content(ALGORITHM, PROBLEM, clients=1, features="hashed", gather=1)
        async with (
            serving(nats_server.url, content) as (hub, _),
            await joined(nats_server.url, hub, "0") as learner,
        ):
            await learner.learn_one({"a": 1, "b": "word"}, True)
            for bad, words in (
                ({"a": [1]}, "a number or a word"),
                ({"a": np.nan}, "must be finite"),
            ):
                with pytest.raises(BadData, match=words):
                    await learner.learn_one(bad, True)
            await learner.learn_one(np.zeros(16), False)  # an array is taken as it is
            return learner.step

    assert asyncio.run(lived()) == 2
