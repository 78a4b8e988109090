"""A run whose losses stop being finite says so: in the result, the table, the folder and the exit code."""

import json
import subprocess
import sys

import numpy as np
import pytest

import mainstem as ms
from mainstem.errors import Diverged


def world():
    draw = np.random.default_rng(0)
    stream = ms.streams.arrays(draw.normal(size=(60, 3)), draw.normal(size=60), clients=5)
    return ms.problems.linear(3), stream


def lost(**settings):
    problem, stream = world()
    with pytest.warns(
        Diverged,
        match=r"fedogd diverged at step \d+, (client \d|\d of 5 clients).*: a smaller step",
    ):
        return ms.simulate(ms.fedogd(1e30), problem, stream, steps=40, **settings)


@pytest.mark.parametrize("settings", [{}, {"plain": True}, {"chunk": 3}, {"dtype": "float64"}])
def test_the_run_says_where(settings):
    run = lost(**settings)
    [[seed, step, count, *_]] = run.summary.diverged
    assert seed == 0
    assert np.isfinite(run.loss[: step - 1]).all()
    assert not np.isfinite(run.loss[step - 1])
    assert 1 <= count <= 5
    assert run.diverged in repr(run)
    assert f"step {step}, " in run.diverged


@pytest.mark.parametrize(("first", "who"), [(2, "3 of 5 clients"), (4, "client 4")])
def test_the_client_or_how_many(first, who):
    x, y = np.ones((60, 1)), np.ones(60)
    x[np.arange(60) % 5 >= first] = 1e25  # the second score of these clients overflows
    stream = ms.streams.arrays(x, y, keys=np.arange(60) % 5)
    with pytest.warns(Diverged, match=f"independent diverged at step 2, {who}: a smaller"):
        ms.simulate(ms.independent(0.1), ms.problems.linear(1), stream, steps=5)


def test_a_run_that_goes_well_says_nothing():
    problem, stream = world()
    run = ms.simulate(ms.fedogd(0.01), problem, stream, steps=20)
    assert run.diverged == ""
    assert run.summary.diverged == []
    assert "diverged" not in repr(run)
    assert "diverged" not in ms.compare([run])[1][0]


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
    command = [sys.executable, "-m", "mainstem.cli", "run", str(file), "--folder", str(tmp_path)]
    found = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert found.returncode == 3, found.stderr
    assert "diverged at step" in found.stderr
    assert found.stderr.count("\n") == 1
    rows = json.loads(found.stdout)["runs"]
    assert "diverged at step" in rows[0]["diverged"]
    assert "diverged" not in rows[1]
    again = subprocess.run(command, capture_output=True, text=True, check=False)  # from the folder
    assert again.returncode == 3
    assert "diverged at step" in again.stdout
