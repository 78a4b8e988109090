"""`mainstem show`: saved runs, one by one or all of a folder."""

import json

import pytest

import mainstem as ms
from tests.cli.command import mainstem

STREAM = ms.streams.digits(clients=5)
PROBLEM = ms.problems.softmax(64, 10)


@pytest.fixture
def runs(tmp_path):
    for n, step in enumerate((0.1, 0.5)):
        run = ms.simulate(ms.fedogd(step), PROBLEM, STREAM, steps=10, seeds=2)
        run.save(tmp_path / "runs" / str(n))
    return tmp_path


def test_a_folder_of_runs(runs):
    done = mainstem(runs, "show", "runs", "--json")
    rows = json.loads(done.stdout)
    assert [row["algorithm"] for row in rows] == ["fedogd step=0.1", "fedogd step=0.5"]
    assert [row["folder"] for row in rows] == ["runs/0", "runs/1"]
    first = ms.load(runs / "runs" / "0")
    assert rows[0]["accuracy"] == pytest.approx(first.accuracy[:, -1].mean())
    assert rows[0]["mean_loss"] == pytest.approx(first.loss.mean())
    assert {"steps": 10, "clients": 5, "seeds": 2, "parameters": 650}.items() <= rows[0].items()


def test_one_run_for_people(runs):
    done = mainstem(runs, "show", "runs/1")
    assert done.returncode == 0
    assert "mean loss" in done.stdout
    assert "runs/1" in done.stdout


def test_an_unfinished_run_says_so(runs):
    (runs / "runs" / "1" / "run.json").unlink()
    done = mainstem(runs, "show", "runs")
    assert done.returncode == 0
    assert "unfinished: run it again to resume" in done.stdout
    (runs / "runs" / "0" / "run.json").unlink()
    done = mainstem(runs, "show", "runs")
    assert done.returncode == 1
    assert "was not finished: run it again to resume" in done.stderr


def test_a_pipe_cuts_nothing(runs):
    deep = runs / ("deep" * 20) / ("er" * 60) / "runs"
    deep.parent.mkdir(parents=True)
    (runs / "runs").rename(deep)
    done = mainstem(runs, "show", str(deep))
    assert str(deep / "0") in done.stdout


@pytest.mark.parametrize(
    ("folder", "words"), [("nothing", "there is no such run folder"), (".", "is not a run folder")]
)
def test_what_has_no_run_is_refused(folder, words, tmp_path):
    done = mainstem(tmp_path, "show", folder)
    assert done.returncode == 1
    assert words in done.stderr
