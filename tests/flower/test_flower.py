"""Runs in Flower: the same as those of `simulate`, and what happens when sites fail."""

import numpy as np
import pytest
from flwr.app import ConfigRecord, RecordDict
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation

import mainstem as ms
from mainstem import flower
from mainstem.errors import MainstemError
from mainstem.spec import plain
from mainstem.testing.comparisons import same
from tests.flower.nodes import Nodes

pytestmark = [pytest.mark.slow, pytest.mark.flower]
CLIENTS, STEPS, SEED = 4, 13, 3
STREAM = ms.streams.digits(clients=CLIENTS)
PROBLEM = ms.problems.softmax(features=64, classes=10)
FEDOGD = ms.fedogd(0.1)
ALGORITHMS = [
    FEDOGD,
    ms.ofediq(0.1, rate=0.7, period=5, levels=3, blocks=14),
    ms.fedsea(0.1, period=3),
]
PLACES = [{"partition-id": k} for k in range(CLIENTS)]


def experiment(algorithm, **rules):
    fixed = {"run": "digits", "clients": CLIENTS, "seed": SEED, "dtype": "float64", "steps": STEPS}
    return {
        "problem": plain(PROBLEM),
        "algorithm": plain(algorithm),
        "federate": {**fixed, "pace": "lockstep", "guard": False, **rules},
    }


def is_simulated(strategy, algorithm):
    """Checks model and losses of a strategy that has ended."""
    known = {"steps": STEPS, "seed": SEED, "dtype": "float64", "measure": ()}
    run = ms.simulate(algorithm, PROBLEM, STREAM, **known)
    for name, array in strategy.arrays.items():
        same(array.numpy(), run.model[name], f"{name} in Flower, and simulated", 1e-9)
    same(strategy.losses.mean(), run.loss.sum(), "losses in Flower, and simulated", 1e-9)
    assert strategy.steps.tolist() == [STEPS] * CLIENTS


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_flowers_simulation_is_ours(algorithm, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_worker_niceness", "0")
    strategy = flower.Strategy(experiment(algorithm))
    app = ServerApp()
    app.main()(lambda grid, context: strategy.finish(grid, timeout=120))
    started = {"num_cpus": 2, "include_dashboard": False, "logging_level": "error"}
    resources = {"num_cpus": 1, "num_gpus": 0}
    config = {"init_args": started, "client_resources": resources}
    run_simulation(app, flower.client_app(STREAM), CLIENTS, backend_config=config)
    is_simulated(strategy, algorithm)


def test_replies_that_are_lost_and_sites_that_fail_are_asked_again():
    strategy = flower.Strategy(experiment(FEDOGD))
    nodes = Nodes(flower.client_app(STREAM), PLACES)
    nodes.lost = {(1, 1000), (3, 1001), (4, 1001)}
    nodes.failing = {(6, 1002), (7, 1002)}
    strategy.finish(nodes)
    is_simulated(strategy, FEDOGD)
    assert nodes.asked[3:5] == [[1001], [1001]]
    assert nodes.asked[6:8] == [[1002], [1002]]


def test_lockstep_ends_with_the_name_of_a_site_that_is_gone():
    strategy = flower.Strategy(experiment(FEDOGD))
    nodes = Nodes(flower.client_app(STREAM), PLACES)
    nodes.failing = {(n, 1002) for n in range(5, 1000)}
    with pytest.raises(MainstemError, match=r"digits: no answer in 9 rounds from 2$"):
        strategy.finish(nodes)


@pytest.mark.parametrize("sites", [3, 0])
def test_lockstep_does_not_wait_for_ever_for_a_site_that_never_comes(sites):
    strategy = flower.Strategy(experiment(FEDOGD))
    missing = rf"digits: {CLIENTS - sites} of 4 sites have not come in 0\.7 seconds"
    with pytest.raises(MainstemError, match=missing):
        strategy.finish(Nodes(flower.client_app(STREAM), PLACES[:sites]), timeout=0.7)


def test_the_free_pace_begins_without_a_site_that_never_comes(caplog):
    strategy = flower.Strategy(experiment(FEDOGD, pace="free"))
    strategy.finish(Nodes(flower.client_app(STREAM), PLACES[:3]), timeout=0.7)
    assert strategy.steps.tolist() == [STEPS] * 3 + [0]
    assert "1 of 4 sites have not come" in caplog.text
    nobody = flower.Strategy(experiment(FEDOGD, pace="free"))
    with pytest.raises(MainstemError, match="4 of 4 sites have not come"):
        nobody.finish(Nodes(flower.client_app(STREAM), []), timeout=0.7)


def test_a_site_that_comes_later_is_waited_for():
    class Late(Nodes):
        looks = 0

        def get_node_ids(self):
            self.looks += 1
            return super().get_node_ids()[: None if self.looks > 2 else 3]

    strategy = flower.Strategy(experiment(FEDOGD))
    strategy.finish(Late(flower.client_app(STREAM), PLACES), timeout=60)
    is_simulated(strategy, FEDOGD)


def test_lockstep_refuses_a_site_that_has_lost_its_state(caplog):
    strategy = flower.Strategy(experiment(FEDOGD))
    nodes = Nodes(flower.client_app(STREAM), PLACES)
    nodes.forgets = {(5, 1003)}
    with pytest.raises(MainstemError, match="no answer in 9 rounds from 3"):
        strategy.finish(nodes)
    assert "client 3 is known up to sample 4, and lost its state" in caplog.text


def test_at_the_free_pace_it_goes_on_from_there():
    strategy = flower.Strategy(experiment(FEDOGD, pace="free"))
    nodes = Nodes(flower.client_app(STREAM), PLACES)
    nodes.forgets, nodes.lost = {(5, 1003)}, {(2, 1000), (9, 1001)}
    strategy.finish(nodes)
    assert strategy.steps.tolist() == [STEPS] * CLIENTS
    assert strategy.losses.mean() / STEPS < 2.3  # of the first model


def test_sites_by_name_with_rows_of_their_own(tmp_path):
    names = ["oslo", "lima"]
    asked = []

    def rows(client, after):
        asked.append((client, after))
        draw = np.random.default_rng(names.index(client))
        for x in draw.normal(size=(60, 3))[after:]:
            yield {"a": x[0], "b": x[1], "c": x[2]}, x.sum()

    content = {
        "problem": {"name": "linear", "features": 3, "intercept": False},
        "algorithm": {"name": "fedogd", "step": 0.1},
        "federate": {"clients": names, "steps": 60, "pace": "free", "features": ["a", "b", "c"]},
    }
    strategy = flower.Strategy(content)
    strategy.finish(Nodes(flower.client_app(rows), [{"client": name} for name in reversed(names)]))
    model = ms.load_model(strategy.save(tmp_path))
    assert model.predict_one([1.0, 0.0, 0.0]) == pytest.approx(1, abs=0.05)
    assert asked[:4] == [("lima", 0), ("oslo", 0), ("lima", 1), ("oslo", 1)]


def test_a_node_that_is_no_client_is_left_out(caplog):
    strategy = flower.Strategy(experiment(FEDOGD))
    strategy.finish(Nodes(flower.client_app(STREAM), [{"partition-id": 9}, *PLACES]))
    is_simulated(strategy, FEDOGD)
    assert "node 1000 is no client" in caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"client": "9", "uploads": [], "step": 1, "loss": 1.0, "since": 0},
        {"client": "1", "uploads": [], "step": 10**9, "loss": 1.0, "since": 0},
        {"client": "1", "uploads": [], "step": 1, "loss": float("nan"), "since": 0},
        {"client": "1", "uploads": [], "step": "one", "loss": 1.0, "since": 0},
        {"client": "1", "uploads": [b"nothing"], "step": 1, "loss": 1.0, "since": 0},
        {"client": "1", "uploads": ["text"], "step": 1, "loss": 1.0, "since": 0},
    ],
    ids=str,
)
def test_a_hostile_answer_ends_nothing(answer, caplog):
    """In the first round, in place of that of site 1."""
    strategy = flower.Strategy(experiment(FEDOGD))
    nodes = Nodes(flower.client_app(STREAM), PLACES)
    nodes.answers = {(1, 1001): RecordDict({"mainstem": ConfigRecord(answer)})}
    strategy.finish(nodes)
    is_simulated(strategy, FEDOGD)
    assert [each for each in caplog.records if each.name == "mainstem"]


def test_other_arrays_are_refused():
    strategy, other = (flower.Strategy(experiment(FEDOGD, seed=n)) for n in (1, 2))
    nodes = Nodes(flower.client_app(STREAM), PLACES)
    strategy.finish(nodes)
    with pytest.raises(MainstemError, match=r"initial_arrays=strategy\.arrays"):
        other.start(nodes, strategy.arrays)


def test_a_run_without_an_end_is_refused():
    content = experiment(FEDOGD)
    del content["federate"]["steps"]
    with pytest.raises(MainstemError, match="needs steps"):
        flower.Strategy(content)
