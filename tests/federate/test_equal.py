"""Simulate equals federate, for every algorithm under contract: a hub, clients and a real NATS server."""

import pytest

import mainstem as ms
from mainstem import parts
from mainstem.engines.federate.hub.hub import Hub
from mainstem.testing.lockstep import CLIENTS, check_lockstep
from tests.contract.attentive import Attentive
from tests.contract.cases import CASES
from tests.federate.worlds import SYNCING
from tests.plugin import dist_info

QUICK = (
    "ofediq quantised",
    "fedomd box",
    "fedres_sgd",
    "guarded models",
)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SYNCING]
)
def test_lockstep_equals_the_simulation(name, nats_server):
    case = CASES[name]
    check_lockstep(case.algorithm, case.world(CLIENTS), url=nats_server.url)


@pytest.mark.slow
@pytest.mark.parametrize(  # with other codecs a flipped rounding is a jump
    "name", [name for name in SYNCING if CASES[name].algorithm.codec.linear]
)
def test_in_single_precision_too(name, nats_server):
    case = CASES[name]
    check_lockstep(case.algorithm, case.world(CLIENTS), url=nats_server.url, dtype="float32")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"participation": parts.bernoulli(0.7)}, marks=pytest.mark.slow),
        {"participation": parts.exactly(2), "sync": parts.every(3), "codec": parts.top_k(5)},
        pytest.param(
            {"participation": parts.bernoulli(0.4), "sync": parts.after_steps([1, 4, 5, 11, 16])},
            marks=pytest.mark.slow,
        ),
    ],
    ids=repr,
)
def test_an_algorithm_that_uses_every_argument(given, nats_server, tmp_path, monkeypatch):
    points = {"mainstem.algorithms": {"Attentive": "tests.contract.attentive:Attentive"}}
    dist_info.installed(tmp_path, {"name": "attentive", "version": "1", "entry-points": points})
    monkeypatch.syspath_prepend(tmp_path)
    check_lockstep(Attentive(step=0.1, **given), url=nats_server.url)


def test_a_difference_is_stated_with_both_numbers(nats_server, monkeypatch):
    """A hub that merges with another step size than the simulator does."""
    honest = Hub.open

    async def tampered(hub):
        await honest(hub)
        real = hub.aggregator._compiled
        late = real._replace(merge=lambda server, got, t: real.merge(server, got, t + 1))
        hub.aggregator._compiled = late

    monkeypatch.setattr(Hub, "open", tampered)
    with pytest.raises(AssertionError, match=r"the hub's model.*: .* and .* differ at \[\d+\]"):
        check_lockstep(ms.fedogd(parts.inverse_sqrt(0.1)), url=nats_server.url)
