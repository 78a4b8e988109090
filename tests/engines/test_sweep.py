"""Sweeps: every point has the run that `simulate` gives, in few programs; they resume and say what is best."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import mainstem as ms
from mainstem import parts, problems, streams
from mainstem.engines.simulate import engine
from mainstem.errors import BadParameter, OnEdge
from mainstem.testing.compilations import counted
from tests.cli.command import mainstem

STREAM = streams.digits(clients=8)
STEPS = [0.05, 0.5, 5.0]
PERSONAL = streams.residuals(4, shared=2, own=2)

MAKES = {
    "fedogd": (lambda step: (ms.fedogd(step), problems.softmax(64, 10)), STREAM),
    "cohort": (lambda step: (ms.ofedavg(step, 0.3), problems.softmax(64, 10)), STREAM),
    "ofediq": (
        lambda step: (ms.ofediq(step, 0.5, 2, levels=3, blocks=4), problems.softmax(64, 10)),
        STREAM,
    ),
    "fedsea": (lambda step: (ms.fedsea(step / 9, period=3), problems.softmax(64, 10)), STREAM),
    "any sync": (
        lambda step: (
            ms.fedomd(step / 9, sync=parts.after_steps([2, 3, 7])),
            problems.softmax(64, 10),
        ),
        STREAM,
    ),
    "personal": (lambda step: (ms.fedres_sgd(step / 99), problems.personal(2, 2)), PERSONAL),
}
quiet = pytest.mark.filterwarnings("ignore::mainstem.errors.OnEdge")


@quiet
@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        *(("fedogd", None), ("cohort", 2), ("fedsea", 2)),
        *(
            pytest.param(name, seeds, marks=pytest.mark.slow)
            for name in MAKES
            for seeds in (None, 2)
        ),
    ],
)
def test_each_point_is_its_own_simulation(name, seeds):
    make, stream = MAKES[name]
    settings = {"steps": 10, "seeds": seeds, "dtype": "float64", "chunk": 4, "measure": ()}
    found = ms.sweep(make, {"step": STEPS}, stream, progress=False, **settings)
    for step, run in zip(STEPS, found.runs, strict=True):
        alone = ms.simulate(*make(step), stream, progress=False, **settings)
        assert run.columns == alone.columns
        for column in alone.columns:
            np.testing.assert_allclose(run.column(column), alone.column(column), rtol=0, atol=1e-10)
        for kind, model in alone.models.items():
            np.testing.assert_allclose(run.models[kind], model, rtol=0, atol=1e-10)
        assert run.summary == alone.summary
        assert run.spec == alone.spec


DELAYED = {
    "fedomd": (
        lambda up: (ms.fedomd(0.1, sync=parts.every(2)), problems.softmax(64, 10), up),
        STREAM,
    ),
    "personal": (lambda up: (ms.fedres_sgd(0.01), problems.personal(2, 2), up), PERSONAL),
    "no numbers": (lambda up: (ms.fedres_erm(), problems.personal(2, 2), up), PERSONAL),
}


@quiet
@pytest.mark.parametrize("seeds", [None, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DELAYED)
def test_delays_are_numbers_of_a_sweep(name, seeds):
    make, stream = DELAYED[name]
    settings = {"steps": 12, "seeds": seeds, "dtype": "float64", "chunk": 5, "measure": ()}

    def wired(up):
        algorithm, problem, delay = make(up)
        return algorithm, problem, parts.network(up=delay, down=1 if delay else 0)

    found = ms.sweep(wired, {"up": [0, 2, 5]}, stream, progress=False, **settings)
    for up, run in zip([0, 2, 5], found.runs, strict=True):
        *made, network = wired(up)
        alone = ms.simulate(*made, stream, progress=False, network=network, **settings)
        for column in alone.columns:
            np.testing.assert_allclose(run.column(column), alone.column(column), rtol=0, atol=1e-10)
        for kind, model in alone.models.items():
            np.testing.assert_allclose(run.models[kind], model, rtol=0, atol=1e-10)
        assert (run.summary, run.spec) == (alone.summary, alone.spec)
    if name == "no numbers":  # nothing to stack: a program for each
        return
    with counted() as count:  # of the same length
        ms.sweep(wired, {"up": [3, 5]}, stream, progress=False, **settings)
        first = count.compiled
        ms.sweep(wired, {"up": [4, 5]}, stream, progress=False, **settings)
    assert count.compiled == first


def softmax(step, ridge=None):
    return ms.fedogd(step), problems.softmax(64, 10, ridge=ridge)


@quiet
def test_points_that_differ_in_numbers_are_one_program():
    ms.sweep(softmax, {"step": STEPS, "ridge": [0.1, 0.2]}, STREAM, steps=20, seeds=2)
    with counted() as count:
        ms.sweep(softmax, {"step": [0.1, 0.2, 0.4], "ridge": [0.3, 0.4]}, STREAM, steps=20, seeds=2)
    assert count.compiled == 0


@quiet
def test_points_of_other_structures_are_programs_of_their_own():
    def make(levels, step):
        return ms.ofediq(step, levels=levels, blocks=2), problems.softmax(64, 10)

    found = ms.sweep(make, {"levels": [1, 3], "step": STEPS}, STREAM, steps=10)
    assert [point["levels"] for point in found.points] == [1, 1, 1, 3, 3, 3]
    assert len({run.summary.uplink_bits for run in found.runs}) == 2


def test_the_best_point_its_neighbours_and_the_table():
    grid = {"step": [5.0, 0.02, 0.5], "ridge": [0.3, 1e-3, 1e-6]}
    with pytest.warns(OnEdge, match=r"edge of the grid \(ridge = 1e-06\): a wider grid"):
        found = ms.sweep(softmax, grid, STREAM, steps=60, seeds=2)
    assert found.axes["step"] == (0.02, 0.5, 5.0)
    assert found.best["step"] == 0.5
    assert found.best["accuracy"] == max(row["accuracy"] for row in found)
    places = {(row["step"], row["ridge"]) for row in found.neighbours}
    assert places == {(0.02, 1e-6), (5.0, 1e-6), (0.5, 1e-3)}
    assert isinstance(found.table, pd.DataFrame)
    assert list(found.table)[:4] == ["step", "ridge", "accuracy", "accuracy_error"]
    assert found.run(step=0.5, ridge=1e-3) is found.runs[4]
    assert "edge of the grid" in str(found)
    assert len(found.figure.axes) == 2  # the map and its scale


@pytest.mark.filterwarnings("ignore::mainstem.errors.Diverged")
@quiet
def test_a_point_that_diverges_is_last():
    def make(step):
        return ms.fedogd(step), problems.linear(64)

    found = ms.sweep(make, {"step": [1e-3, 1e30]}, STREAM, steps=30, seeds=2)
    assert found.best["step"] == 1e-3
    assert "diverged" in found.rows[1]
    assert found.order == [0, 1]


@quiet
def test_a_sweep_that_was_interrupted_is_resumed(tmp_path, monkeypatch):
    settings = {"steps": 40, "seeds": 2, "chunk": 10, "checkpoint": 0.0, "dtype": "float64"}
    whole = ms.sweep(softmax, {"step": STEPS}, STREAM, **settings)
    save, saved = engine.Recorder.save, []

    def interrupted(self, *given):
        save(self, *given)
        saved.append(self.step)
        if len(saved) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engine.Recorder, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ms.sweep(softmax, {"step": STEPS}, STREAM, folder=tmp_path, **settings)
    assert saved == [10, 20]
    resumed = ms.sweep(softmax, {"step": STEPS}, STREAM, folder=tmp_path, **settings)
    pd.testing.assert_frame_equal(resumed.table, whole.table)
    monkeypatch.setattr(engine, "run_chunks", None)  # nothing is computed again
    again = ms.sweep(softmax, {"step": STEPS}, STREAM, folder=tmp_path, **settings)
    pd.testing.assert_frame_equal(again.table, whole.table)


@pytest.mark.parametrize(
    ("make", "grid", "message"),
    [
        (softmax, {}, "sweep: grid must name the values of each parameter"),
        (softmax, {"step": 0.1}, r"sweep: grid\['step'\] must be a list of values, got 0.1"),
        (softmax, {"step": [0.1, 0.1]}, r"grid\['step'\] must have each value once, got 0.1"),
        (softmax, {"step": [0.1, -1]}, "sweep: at step = -1: fedogd: step must be"),
        (
            lambda step: ms.fedogd(step),
            {"step": [1]},
            "make must return an algorithm and a problem",
        ),
    ],
)
def test_refusals(make, grid, message):
    with pytest.raises(BadParameter, match=message):
        ms.sweep(make, grid, STREAM, steps=3)


FILE = """
[problem]
name = "softmax"
features = 64
classes = 10
[stream]
name = "digits"
clients = 8
[[algorithm]]
name = "fedogd"
[simulate]
steps = 30
[sweep]
"algorithm.step" = { from = 0.01, to = 100, count = 3, log = true }
"problem.ridge" = [1e-6, 1e-3]
"""
LINKS = '[sweep]\n"simulate.network.up" = [0, 1, 3]\n'
DELAYS = FILE.partition("[sweep]")[0].replace('"fedogd"', '"fedogd"\nstep = 0.5') + LINKS


@pytest.fixture
def cached(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    (tmp_path / "grid.toml").write_text(FILE)
    return tmp_path


def test_the_command(cached):
    done = mainstem(cached, "sweep", "grid.toml", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["points"]) == 6
    assert found["best"]["algorithm.step"] == 1.0
    assert found["edges"] == ["problem.ridge"]
    assert (cached / found["figure"]).exists()
    assert len((cached / "runs/grid-sweep/sweep.csv").read_text().splitlines()) == 7
    assert (cached / "runs/grid-sweep/report.html").exists()
    (cached / "delays.toml").write_text(DELAYS)
    delays = mainstem(cached, "sweep", "delays.toml", "--json")
    assert delays.returncode == 0, delays.stderr
    assert [each["simulate.network.up"] for each in json.loads(delays.stdout)["points"]] == [
        0,
        1,
        3,
    ]
    again = mainstem(cached, "sweep", "grid.toml")
    assert again.returncode == 0
    assert "the best point is on the edge of the grid (problem.ridge" in again.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            'sweep={ "stream.clients" = [1] }',
            "wants a key of the algorithm, the problem or simulate.network",
        ),
        ('sweep={ "algorithm.step" = 1 }', "wants a list of values, got 1"),
        ('sweep={ "algorithm.step" = { from = 1, till = 2 } }', "unknown key 'till'"),
        ('sweep={ "algorithm.step" = { from = 0, to = 1, count = 3, log = true } }', "above 0"),
        ('sweep={ "algorithm.stepp" = [1] }', "did you mean step?"),
        ("simulate.plain=true", "unknown key 'plain'"),
        ("sweep={}", r"[sweep] wants keys with lists"),
    ],
)
def test_the_command_refuses_in_one_line(cached, change, message):
    done = mainstem(cached, "sweep", "grid.toml", "--set", change)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


SCRIPT = """
import sys
from jax import monitoring
from mainstem.cli import main
events = []
monitoring.register_event_listener(lambda name, **_: events.append(name))
sys.argv = ["mainstem", "sweep", "grid.toml", "--folder", sys.argv[1]]
try:
    main()
except SystemExit:
    pass
print("misses", sum(name.endswith("/cache_misses") for name in events))
print("hits", sum(name.endswith("/cache_hits") for name in events))
"""


@pytest.mark.slow
def test_a_second_process_starts_without_compiling(cached):
    def counts(folder):
        command = [sys.executable, "-c", SCRIPT, folder]
        done = subprocess.run(command, cwd=cached, env=os.environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return dict(line.split() for line in done.stdout.splitlines()[-2:])

    first = counts("one")
    assert int(first["misses"]) > 0
    second = counts("other")
    assert second["misses"] == "0"
    assert int(second["hits"]) > 0
