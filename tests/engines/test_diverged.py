"""A run whose losses stop being finite says so: in the result, the table, the folder and the exit code."""

import json

import numpy as np
import pytest

import mainstem as ms
from mainstem.errors import Diverged
from mainstem.run import folder as folders
from tests.cli.command import mainstem


def world():
    draw = np.random.default_rng(0)
    stream = ms.streams.arrays(draw.normal(size=(60, 3)), draw.normal(size=60), clients=5)
    return ms.problems.linear(3), stream


def diverging(**settings):
    return ms.simulate(ms.fedogd(1e30), *world(), steps=40, **settings)


def lost(**settings):
    with pytest.warns(
        Diverged,
        match=r"fedogd diverged at step \d+, clients? \d.*: a smaller step",
    ):
        return diverging(**settings)


@pytest.mark.parametrize("settings", [{}, {"plain": True}, {"chunk": 3}, {"dtype": "float64"}])
def test_the_run_says_where(settings):
    run = lost(**settings)
    [[seed, step, count, *clients]] = run.summary.diverged
    assert seed == 0
    assert np.isfinite(run.loss[: step - 1]).all()
    assert not np.isfinite(run.loss[step - 1])
    assert 1 <= count == len(clients) <= 5
    assert run.diverged in repr(run)
    assert f"step {step}, " in run.diverged


@pytest.mark.parametrize(
    ("those", "who"),
    [([4], "client 4"), ([3, 9], "clients 3, 9"), (range(1, 20), "19 of 20 clients")],
)
@pytest.mark.parametrize("settings", [{}, {"plain": True}, {"chunk": 2}, {"seeds": 2}])
def test_the_clients_or_how_many(those, who, settings):
    x, y, client = np.ones((100, 1)), np.ones(100), np.arange(100) % 20
    x[np.isin(client, those)] = 1e25  # the second score of these clients overflows
    stream = ms.streams.arrays(x, y, keys=client)
    with pytest.warns(Diverged, match=f"independent diverged at step 2, {who}( of seed .*)?: a"):
        run = ms.simulate(ms.independent(0.1), ms.problems.linear(1), stream, steps=5, **settings)
    assert run.summary.diverged[-1][3:] == list(those)[:10]


def test_a_resumed_run_remembers(tmp_path, monkeypatch):
    """Interrupted after the checkpoint that follows the first losses that are not finite."""
    add_part, added = folders.add_part, []

    def interrupted(*given):
        added.append(given)
        if len(added) == 4:
            raise KeyboardInterrupt
        add_part(*given)

    settings = {"chunk": 10, "checkpoint": 0.0}
    with monkeypatch.context() as patch:
        patch.setattr(folders, "add_part", interrupted)
        with pytest.raises(KeyboardInterrupt):
            diverging(folder=tmp_path / "run", **settings)
    assert lost(folder=tmp_path / "run", **settings).diverged == lost(**settings).diverged


def test_a_run_that_goes_well_says_nothing():
    problem, stream = world()
    run = ms.simulate(ms.fedogd(0.01), problem, stream, steps=20)
    assert run.diverged == ""
    assert run.summary.diverged == []
    assert "diverged" not in repr(run)
    assert "diverged" not in ms.compare([run]).rows[0]


def test_each_seed_has_its_own():
    run = lost(seeds=3)
    assert [each[0] for each in run.summary.diverged] == [0, 1, 2]
    assert "3 of 3 seeds" in run.diverged


def test_it_stays_in_the_folder(tmp_path):
    run = lost(folder=tmp_path / "run")
    assert ms.load(tmp_path / "run").diverged == run.diverged


def test_the_table_and_the_exit_code(tmp_path):
    file = tmp_path / "lost.toml"
    file.write_text(
        '[problem]\nname = "quadratic"\ndimension = 3\n'
        '[stream]\nname = "sea_quadratic"\nclients = 4\ndimension = 3\n'
        '[[algorithm]]\nname = "fedogd"\nstep = 1e30\n'
        '[[algorithm]]\nname = "fedogd"\nstep = 0.1\n'
        "[simulate]\nsteps = 30\n"
    )
    words = ["run", str(file), "--folder", str(tmp_path)]
    found = mainstem(tmp_path, *words, "--json")
    assert found.returncode == 3, found.stderr
    assert "diverged at step" in found.stderr
    assert found.stderr.count("\n") == 1
    rows = json.loads(found.stdout)["runs"]
    assert "diverged at step" in rows[0]["diverged"]
    assert "diverged" not in rows[1]
    again = mainstem(tmp_path, *words)  # from the folder
    assert again.returncode == 3
    assert "diverged at step" in again.stdout


@pytest.mark.parametrize("settings", [{}, {"seeds": 2}])
def test_metrics_end_where_it_diverged(settings):
    """A score of NaN is no guess, even where the class that it would be is the right one."""
    draw = np.random.default_rng(0)
    stream = ms.streams.arrays(draw.normal(size=(60, 3)), np.zeros(60, int), clients=5)
    given = {"steps": 12, "measure": ["scores"], **settings}
    with pytest.warns(Diverged):
        run = ms.simulate(ms.fedogd(1e30), ms.problems.logistic(3, ridge=1.0), stream, **given)
    step = run.summary.diverged[0][1]
    for name in ("accuracy", "f1", "log_loss"):
        curve = np.atleast_2d(run.curve(name))[0]
        assert np.isfinite(curve[: step - 1]).all()
        assert np.isnan(curve[step - 1 :]).all()
