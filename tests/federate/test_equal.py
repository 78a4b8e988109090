"""Simulate equals federate, for every algorithm under contract: a hub, clients and a real NATS server."""

import asyncio
import secrets

import jax
import numpy as np
import pytest

import mainstem as ms
from mainstem import parts
from mainstem.spec import plain
from tests.contract.attentive import Attentive
from tests.contract.cases import CASES, Case
from tests.federate.in_process import joined, serving
from tests.federate.worlds import SYNCING, samples
from tests.plugin import dist_info

CLIENTS, STEPS, SEED = 5, 18, 3


async def lived(url, algorithm, world, dtype, clients=CLIENTS, steps=STEPS, seed=SEED):
    """(the hub's model, the sum of the clients' mean losses) of a run in lockstep."""
    rules = {"clients": clients, "pace": "lockstep", "seed": seed, "dtype": dtype, "steps": steps}
    content = {
        "problem": plain(world.problem),
        "algorithm": plain(algorithm),
        "federate": rules
        | {"run": f"equal-{secrets.token_hex(8)}"},  # two names can be of one value
    }

    async def live(hub, k):
        async with await joined(url, hub, str(k)) as learner:
            for sample in samples(world.stream, seed, k, 1, steps, dtype):
                await learner.step_with(sample)
            return learner.loss

    async with serving(url, content) as (hub, _):
        losses = await asyncio.gather(*(live(hub, k) for k in range(clients)))
        return hub.aggregator.model, sum(losses) / clients


def vector(model):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model)])


def compare(url, case, dtype, tolerance):
    algorithm, world = case.algorithm, case.world(CLIENTS)
    model, loss = asyncio.run(lived(url, algorithm, world, dtype))
    run = ms.simulate(
        algorithm, world.problem, world.stream, steps=STEPS, seed=SEED, dtype=dtype, measure=()
    )
    assert np.allclose(model, vector(run.model), rtol=tolerance, atol=tolerance)
    assert np.isclose(loss, run.loss.sum(), rtol=tolerance)


@pytest.fixture
def url(nats_server):
    return nats_server.url


QUICK = ("ofediq quantised", "fedomd box", "fedres_sgd")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SYNCING]
)
def test_lockstep_equals_the_simulation(name, url):
    compare(url, CASES[name], "float64", 1e-9)


@pytest.mark.slow
def test_in_single_precision_too(url):
    compare(url, Case(ms.fedomd(0.1, sync=ms.parts.every(3))), "float32", 1e-4)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"participation": parts.bernoulli(0.7)}, marks=pytest.mark.slow),
        {"participation": parts.exactly(2), "sync": parts.every(3), "codec": parts.top_k(5)},
        {"participation": parts.bernoulli(0.4), "sync": parts.after_steps([1, 4, 5, 11, 16])},
    ],
    ids=repr,
)
def test_an_algorithm_that_uses_every_argument(given, url, tmp_path, monkeypatch):
    points = {"mainstem.algorithms": {"Attentive": "tests.contract.attentive:Attentive"}}
    dist_info.installed(tmp_path, {"name": "attentive", "version": "1", "entry-points": points})
    monkeypatch.syspath_prepend(tmp_path)
    compare(url, Case(Attentive(step=0.1, **given)), "float64", 1e-9)
