"""FedRes over the network: own parts of different kinds, and a hub that stores its earlier broadcasts."""

import asyncio

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mainstem as ms
from mainstem.base import Domain, Pair, Problem, Sample
from mainstem.errors import BadSpec
from mainstem.value import integer, part, value
from tests.federate.in_process import joined, run_content, serving, until

PERSONAL = {"name": "personal", "shared": 3, "own": 2}
FEDRES = {"name": "fedres_sgd", "step": 0.05}


def network(params, x):
    return params["out"] @ jnp.tanh(params["in"] @ x)


@value
class with_network(Problem):
    """A shared linear part, and an own part that is a small network."""

    hidden: int = integer(default=4, least=1)
    domain: Domain = part(Domain, "box(-1, 1)", default=ms.parts.everything())

    convex = True

    def init(self, key):
        weights = jax.random.normal(key, (self.hidden, 2), jnp.result_type(float))
        return Pair(jnp.zeros(3), {"in": weights, "out": jnp.zeros(self.hidden)})

    def decide(self, params, shown, at):
        return params.shared @ shown[0] + network(params.own, shown[1])

    def reveal(self, decision, sample):
        return sample

    def loss(self, params, seen):
        return (self.decide(params, seen.shown, None) - seen.hidden) ** 2

    @property
    def residual(self):
        return ms.problems.personal(shared=3, own=2).residual._replace(own=network)


def given(n, own=2):
    draw = np.random.default_rng(n)
    shared, local = draw.normal(size=3), draw.normal(size=own)
    return Sample((shared, local), shared @ [1.0, -1.0, 0.5] + np.tanh(local[0]))


async def stepped(learners, count, own):
    for n in range(count):
        await asyncio.gather(
            *(each.step_with(given(10 * n + k, own[k])) for k, each in enumerate(learners))
        )


def test_clients_with_other_local_models_learn_one_shared_model(nats_server):
    problems = [None, ms.problems.personal(shared=3, own=5), with_network()]

    async def lived():
        content = run_content(
            FEDRES, PERSONAL, clients=3, pace="lockstep", steps=200, dtype="float64"
        )
        async with serving(nats_server.url, content) as (hub, _):
            learners = [
                await joined(nats_server.url, hub, str(k), problem=problem)
                for k, problem in enumerate(problems)
            ]
            await stepped(learners, 50, [2, 5, 2])
            early = [each.loss for each in learners]
            await stepped(learners, 150, [2, 5, 2])
            late = [each.loss for each in learners]
            for each in learners:
                await each.close()
            return hub.aggregator.model, np.array(early) / 50, (np.array(late) - early) / 150

    shared, early, late = asyncio.run(lived())
    assert np.allclose(shared, [1.0, -1.0, 0.5], atol=0.25)
    assert (late < early / 2).all()


@pytest.mark.parametrize(
    ("algorithm", "problem", "expected"),
    [
        (FEDRES, ms.problems.personal(shared=4, own=2), "the run's shared part"),
        (FEDRES, ms.problems.linear(features=3), "a shared and an own part"),
        ({"name": "fedogd", "step": 0.1}, ms.problems.linear(features=3), "only of fedres_sgd"),
    ],
)
def test_a_problem_that_does_not_fit_is_refused(algorithm, problem, expected, nats_server):
    async def lived():
        source = PERSONAL if algorithm is FEDRES else {"name": "linear", "features": 3}
        async with serving(nats_server.url, run_content(algorithm, source)) as (hub, _):
            with pytest.raises(BadSpec, match=expected):
                await joined(nats_server.url, hub, "0", problem=problem)

    asyncio.run(lived())


def test_a_hub_that_comes_back_knows_the_models_that_clients_still_hold(nats_server):
    async def lived():
        content = run_content(FEDRES, PERSONAL, gather=1, dtype="float64")
        async with serving(nats_server.url, content) as (hub, _):
            slow = await joined(nats_server.url, hub, "1")
            async with await joined(nats_server.url, hub, "0") as quick:
                for n in range(5):
                    await quick.step_with(given(n))
                    await until(lambda: hub.aggregator.records.merged[0] == quick.step)
            held = dict(hub.aggregator.bases)
        async with serving(nats_server.url, content) as (hub, _):
            assert hub.aggregator.bases.keys() == held.keys()
            assert all(np.array_equal(hub.aggregator.bases[v], held[v]) for v in held)
            slow.session.uplink._broadcasts.value = None  # it still holds the first model
            await slow.step_with(given(9))
            await until(lambda: hub.aggregator.records.merged[1] == 1)
            assert hub.aggregator.records.staleness[1] == 5
            await slow.close()

    asyncio.run(lived())
