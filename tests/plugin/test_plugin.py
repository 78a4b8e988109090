"""An algorithm from a plugin is supported like the built-in ones."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

import mainstem as ms
from mainstem import algorithms, experiment, parts
from mainstem.errors import BadSpec
from mainstem.run.reporting.content import of_runs
from mainstem.testing import World, check_algorithm
from mainstem.testing.lockstep import check_lockstep

PROBLEM = ms.problems.softmax(64, 10)
TABLE = {"name": "TopKAdaGrad", "step": 0.3, "count": 40}


@pytest.fixture
def made(installed):
    return experiment.made("spec", algorithms, TABLE)


def test_it_is_short(installed):
    import mainstem_topk

    assert len(inspect.getsource(mainstem_topk).splitlines()) < 60


def test_it_fulfils_the_contract(installed):
    check_algorithm(experiment.made("spec", algorithms, TABLE | {"count": 5}))


def test_it_is_a_numpy_loop(made):
    """AdaGrad on the mean of the largest entries, with what was left behind sent later."""
    draw = np.random.default_rng(0)
    features, target = draw.normal(size=(40, 6)), draw.normal(size=40)
    stream = ms.streams.arrays(features, target, clients=4)
    problem = ms.problems.linear(6, intercept=False)
    algorithm = made.replace(count=2)
    run = ms.simulate(algorithm, problem, stream, steps=30, dtype="float64")
    w, left, squares = np.zeros(6), np.zeros((4, 6)), np.full(6, 0.1)
    for t in range(30):
        rows = stream.places(0, t + 1, t + 1)[0]
        total = np.zeros(6)
        for k, row in enumerate(rows):
            left[k] += (features[row] @ w - target[row]) * features[row]
            largest = np.argsort(-np.abs(left[k]))[:2]
            total[largest] += left[k][largest]
            left[k][largest] = 0
        squares += (total / 4) ** 2
        w -= 0.3 * (total / 4) / np.sqrt(squares + 1e-7)
    assert np.allclose(run.model, w, rtol=0, atol=1e-10)


def test_it_has_an_automatic_step_and_advice(made):
    problem = ms.problems.linear(6, ridge=0.1, intercept=False)
    stream = ms.streams.sea_ridge(clients=20, dimension=6, ridge=0.1)
    own = made.replace(step="auto", count=2)
    run = ms.simulate(own, problem, stream, steps=200, measure=())
    assert run.algorithm.step.always > 0
    assert run.loss[-50:].mean() < 0.8 * run.loss[:5].mean()
    advice = ms.advise(problem, stream, budget=0.2, steps=200, also=[own])
    assert "TopKAdaGrad" in [row["algorithm"] for row in advice.table()]
    assert len({row.regret for row in advice.rows}) > 1


def test_what_it_does_not_declare_is_named(made):
    run = ms.simulate(made, PROBLEM, ms.streams.digits(clients=10), steps=5)
    with pytest.raises(ms.MainstemError, match="declares no family of theorems"):
        run.bound()
    adaptive = ms.fedogd("auto", server=parts.optimizer("adam", learning_rate=0.1))
    with pytest.raises(
        ms.MainstemError, match="only of an algorithm that declares what it `sends`"
    ):
        ms.simulate(adaptive, PROBLEM, ms.streams.digits(clients=10), steps=5)


def test_its_runs_are_saved_and_loaded(made, tmp_path):
    run = ms.simulate(made, PROBLEM, ms.streams.digits(clients=10), steps=5)
    found = ms.load(run.save(tmp_path / "run"))
    assert found.algorithm == made
    assert found.name == "TopKAdaGrad"


def test_over_nats_it_is_the_simulation(made):
    """Hub and clients know it by its entry point alone."""
    check_lockstep(made, World(PROBLEM, ms.streams.digits(clients=3)), steps=12)


def test_another_process_finds_it_in_an_experiment_file(installed, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        '[problem]\nname = "softmax"\nfeatures = 64\nclasses = 10\n'
        '[stream]\nname = "digits"\nclients = 5\n'
        '[[algorithm]]\nname = "TopKAdaGrad"\nstep = 0.3\n[simulate]\nsteps = 5\n'
    )
    command = [sys.executable, "-m", "mainstem.cli", "run", str(file), "--json"]
    found = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert '"algorithm": "TopKAdaGrad"' in found.stdout
    missing = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert missing.returncode == 1
    assert "unknown name 'TopKAdaGrad'" in missing.stderr


def test_a_plugin_that_is_broken_is_refused_in_a_line(installed):
    (installed / "mainstem_topk" / "__init__.py").write_text("raise RuntimeError('half installed')")
    with pytest.raises(BadSpec, match=r"TopKAdaGrad: the plugin .* cannot be loaded: half install"):
        experiment.made("spec", algorithms, TABLE)


def test_a_document_names_no_code():
    """Only what is built in or declared by an installed package can be named."""
    for name in ("os:system", "mainstem_topk:TopKAdaGrad", "numpy.mean", "__import__"):
        with pytest.raises(BadSpec, match="unknown name"):
            experiment.made("spec", algorithms, {"name": name, "step": 0.1})
    with pytest.raises(ms.MainstemError, match="must name a rule of optax"):
        parts.optimizer("__builtins__")
    with pytest.raises(ms.MainstemError, match="must name a rule of optax"):
        parts.optimizer("apply_updates")


def test_a_report_says_how_to_run_it_again(made):
    run = ms.simulate(made, PROBLEM, ms.streams.digits(5), steps=2)
    assert run.spec["algorithm"][0]["code"]

    def command():
        (shown,) = of_runs(ms.compare(run), regret=False)["runs"]
        return dict(shown["facts"])["Command"]

    assert command().startswith("mainstem run")
    run.spec["algorithm"][0]["name"] = "Own"  # of a class that is in no plugin
    assert command().startswith("none")
