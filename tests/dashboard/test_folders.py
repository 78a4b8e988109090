"""Simulations on the live page: their curves so far, also of one that was killed."""

import asyncio

import numpy as np
import pytest

import mainstem as ms
from mainstem.dashboard.folders import Folder
from mainstem.errors import MainstemError
from mainstem.run import folder as folders

STEPS = 400


@pytest.fixture
def stream():
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(200, 3))
    return ms.streams.arrays(rows, (rows[:, 0] > 0).astype(int), clients=4)


def simulate(stream, place, **settings):
    problem = ms.problems.logistic(features=3)
    return ms.simulate(ms.fedogd(0.1), problem, stream, steps=STEPS, folder=place, **settings)


def looked(path):
    """The folder after one look."""
    found = Folder(path)
    found._refresh()
    return found


def line(shown, chart, name):
    (drawn,) = [each for each in shown["charts"] if each["id"] == chart]
    (found,) = [each for each in drawn["lines"] if each["name"] == name]
    return found["x"], found["y"]


def test_a_finished_run_has_its_curves(stream, tmp_path):
    run = simulate(stream, tmp_path / "one", seeds=2)
    found = looked(tmp_path)
    assert [(row["run"], row["state"], row["at"]) for row in found.rows()] == [
        ("one", "finished", "step 400 of 400")
    ]
    x, y = line(found.whole("one", []), "loss", "mean until then")
    mean = np.asarray(run.loss).mean(axis=0)
    np.testing.assert_allclose(
        y, (np.cumsum(mean) / np.arange(1, STEPS + 1))[np.array(x) - 1], rtol=1e-6
    )


def test_a_run_that_was_killed_has_its_curves_so_far(stream, tmp_path, monkeypatch):
    whole = simulate(stream, tmp_path / "whole").loss

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(folders, "finish", killed)
    with pytest.raises(KeyboardInterrupt):
        simulate(stream, tmp_path / "half", checkpoint=0.0)
    found = looked(tmp_path)
    rows = {row["run"]: row for row in found.rows()}
    assert rows["half"]["state"] == "in progress"
    x, y = line(found.whole("half", []), "loss", "of the step")
    assert x
    np.testing.assert_allclose(y, np.asarray(whole)[np.array(x) - 1], rtol=1e-6)
    seen = found.whole("half", [])["revision"]
    found._refresh()
    assert found.latest("half", [], seen) is None  # nothing has changed
    monkeypatch.undo()
    simulate(stream, tmp_path / "half", checkpoint=0.0)
    found._refresh()
    shown = found.latest("half", [], seen)
    assert shown["facts"][0] == ["state", "finished"]
    np.testing.assert_allclose(line(shown, "loss", "of the step")[1], whole, rtol=1e-6)


def test_what_cannot_be_read_is_left_out_and_breaks_nothing(stream, tmp_path):
    simulate(stream, tmp_path / "fine")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "spec.toml").write_text("not = = toml")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "spec.toml").write_bytes((tmp_path / "fine" / "spec.toml").read_bytes())
    (tmp_path / "cut" / "trace").mkdir()
    (tmp_path / "cut" / "trace" / "000000.parquet").write_bytes(b"PAR1")
    assert [row["run"] for row in looked(tmp_path).rows()] == ["fine"]


def test_a_folder_that_goes_is_a_problem_that_is_shown(tmp_path):
    with pytest.raises(MainstemError, match="there is no such folder"):
        Folder(tmp_path / "none")
    found = looked(tmp_path)
    assert found.rows() == []
    with pytest.raises(MainstemError, match="takes no orders"):
        asyncio.run(found.order("a", "pause", ""))
