"""Simulations on the live page: their curves so far, also of one that was killed."""

import asyncio
import json
import os
import shutil

import numpy as np
import pytest

import mainstem as ms
from mainstem.dashboard import folders as dashboard
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


def shown_by(found, name):
    """A run as the page shows it, after it has asked for it."""
    found.whole(name, [])
    found._refresh()
    return found.whole(name, [])


def killed(*_):
    raise KeyboardInterrupt


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
    x, y = line(shown_by(found, "one"), "loss", "mean until then")
    mean = np.asarray(run.loss).mean(axis=0)
    np.testing.assert_allclose(
        y, (np.cumsum(mean) / np.arange(1, STEPS + 1))[np.array(x) - 1], rtol=1e-6
    )


def test_a_run_that_was_killed_has_its_curves_so_far(stream, tmp_path, monkeypatch):
    whole = simulate(stream, tmp_path / "whole").loss

    monkeypatch.setattr(folders, "finish", killed)
    with pytest.raises(KeyboardInterrupt):
        simulate(stream, tmp_path / "half", checkpoint=0.0)
    found = looked(tmp_path)
    rows = {row["run"]: row for row in found.rows()}
    assert rows["half"]["state"] == "in progress"
    x, y = line(shown_by(found, "half"), "loss", "of the step")
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


def test_what_cannot_be_read_says_so_and_breaks_nothing(stream, tmp_path, monkeypatch):
    monkeypatch.setattr(dashboard, "LARGEST", 2**20)
    simulate(stream, tmp_path / "fine")
    spec = (tmp_path / "fine" / "spec.toml").read_text()
    odd = {
        "foreign": "not = = toml",
        "without_steps": "[package]\nname = 'other'",
        "words": "[simulate]\nsteps = 'many'",
        "deep": "x = " + "[" * 5000 + "]" * 5000,
        "large": spec + "#" * 2**20,
        "cut": spec,
    }
    for name, text in odd.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "spec.toml").write_text(text)
    (tmp_path / "cut" / "trace").mkdir()
    (tmp_path / "cut" / "trace" / "000000.parquet").write_bytes(b"PAR1")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "spec.toml")  # whoever opens it waits
    found = looked(tmp_path)
    rows = {row["run"]: row["state"] for row in found.rows()}
    assert rows == {"fine": "finished"} | dict.fromkeys(odd, "cannot be read")
    for name in odd:
        facts = dict(found.whole(name, [])["facts"])
        assert facts["state"] == "cannot be read"
        assert facts["why"]
    assert shown_by(found, "fine")["charts"]
    (tmp_path / "cut" / "trace" / "000000.parquet").unlink()
    found._refresh()
    assert {row["run"]: row["state"] for row in found.rows()}["cut"] == "in progress"


def test_a_part_without_rows_is_one(stream, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "finish", killed)
    with pytest.raises(KeyboardInterrupt):
        simulate(stream, tmp_path / "rare", every=200, chunk=100, checkpoint=0.0)
    found = looked(tmp_path)
    assert [(row["state"], row["at"]) for row in found.rows()] == [
        ("in progress", "step 400 of 400")
    ]
    assert line(shown_by(found, "rare"), "loss", "of the step")[0] == [200, 400]


def test_accuracy_is_that_of_the_clients_with_a_sample(tmp_path):
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(60, 2))
    keys = np.repeat([0, 1, 2], [30, 20, 10])  # the shorter ones are silent at the end
    deal = ms.streams.by_key(ends="silent")
    stream = ms.streams.arrays(rows, (rows[:, 0] > 0).astype(int), keys=keys, deal=deal)
    problem = ms.problems.logistic(features=2)
    settings = {"steps": 30, "seeds": 2, "folder": tmp_path / "one"}
    run = ms.simulate(ms.fedogd(0.5), problem, stream, **settings)
    found = shown_by(looked(tmp_path), "one")
    _, so_far = line(found, "correct", "mean until then")
    np.testing.assert_allclose(so_far, run.accuracy.mean(axis=0), rtol=1e-6)
    _, each = line(found, "correct", "of the step")
    rights = run.column("correct") / run.column("present")
    np.testing.assert_allclose(each, rights.mean(axis=0), rtol=1e-6)


def test_curves_of_several_parts_are_those_of_the_whole(stream, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(folders, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            simulate(stream, tmp_path / "half", chunk=100, checkpoint=0.0, seeds=2)
    assert len(list((tmp_path / "half" / "trace").iterdir())) > 1
    run = simulate(stream, tmp_path / "whole", seeds=2)
    _, y = line(shown_by(looked(tmp_path), "half"), "correct", "mean until then")
    np.testing.assert_allclose(y, run.accuracy.mean(axis=0), rtol=1e-6)


def test_a_sweep_says_what_it_is_and_shows_the_mean_of_the_finite_ones(
    stream, tmp_path, monkeypatch
):
    monkeypatch.setattr(folders, "finish", killed)
    problem = ms.problems.linear(features=3)
    with pytest.raises(KeyboardInterrupt):
        ms.sweep(
            lambda step: (ms.fedogd(step), problem),
            {"step": [0.01, 0.02, 1e9]},
            stream,
            steps=STEPS,
            folder=tmp_path,
        )
    found = looked(tmp_path)
    (row,) = found.rows()
    assert row["at"] == "step 400 of 400, 3 configurations"
    (loss, *_) = shown_by(found, row["run"])["charts"]
    assert "3 configurations" in loss["title"]
    _, y = line({"charts": [loss]}, "loss", "of the step")
    expected = [
        ms.simulate(ms.fedogd(step), problem, stream, steps=STEPS).loss for step in (0.01, 0.02)
    ]
    assert y[-1] == pytest.approx(np.mean(expected, axis=0)[-1], rel=1e-5)


def test_a_run_that_is_deleted_and_made_again_is_the_new_one(stream, tmp_path):
    simulate(stream, tmp_path / "one")
    found = looked(tmp_path)
    seen = shown_by(found, "one")["revision"]
    shutil.rmtree(tmp_path / "one")
    again = simulate(stream, tmp_path / "one", seed=1)
    found._refresh()
    shown = found.latest("one", [], seen)
    np.testing.assert_allclose(line(shown, "loss", "of the step")[1], again.loss, rtol=1e-6)


def test_the_number_of_clients_is_shown(stream, tmp_path, monkeypatch):
    simulate(stream, tmp_path / "one")
    monkeypatch.setattr(folders, "finish", killed)
    digits, problem = ms.streams.digits(clients=10), ms.problems.softmax(64, 10)
    with pytest.raises(KeyboardInterrupt):
        ms.simulate(ms.fedogd(0.1), problem, digits, steps=5, folder=tmp_path / "two")
    assert {row["run"]: row["sites"] for row in looked(tmp_path).rows()} == {
        "one": "4",
        "two": "10",
    }


def test_the_number_of_clients_with_long_names_is_shown(stream, tmp_path):
    simulate(stream, tmp_path / "one")
    spec = tmp_path / "one" / "spec.toml"  # as of a stream that counts its clients itself
    spec.write_text(spec.read_text().replace("clients = 4\n", ""))
    summary = json.loads((tmp_path / "one" / "run.json").read_text())
    names = {"names": [f"{n:0300}" for n in range(4000)]}
    (tmp_path / "one" / "run.json").write_text(json.dumps(summary | names))
    (row,) = looked(tmp_path).rows()
    assert row["sites"] == "4"


def test_a_run_before_its_first_checkpoint_was_written_when_it_began(stream, tmp_path):
    simulate(stream, tmp_path / "one")
    for name in ("run.json", "trace.parquet"):
        (tmp_path / "one" / name).unlink()
    os.utime(tmp_path / "one" / "spec.toml", (1e9, 1e9))
    facts = dict(shown_by(looked(tmp_path), "one")["facts"])
    assert facts["state"] == "in progress"
    assert facts["last written"].startswith("2001-09-")


def test_curves_that_are_dropped_while_a_page_is_answered_are_in_the_answer(tmp_path):
    class Dropped(dashboard.Simulation):
        """A run whose curves another thread drops after they were looked at once."""

        def __getattribute__(self, name):
            found = super().__getattribute__(name)
            if name == "charts":
                self.charts = None
            return found

    found = Folder(tmp_path)
    found._runs["one"] = run = Dropped(tmp_path, (None, None), None)
    run.charts = [{"id": "loss"}]
    assert found.whole("one", [])["charts"] == [{"id": "loss"}]


def test_curves_are_read_when_a_page_asks_and_dropped_when_none_does(stream, tmp_path, monkeypatch):
    simulate(stream, tmp_path / "one")
    found = looked(tmp_path)
    assert found._runs["one"].charts is None
    assert shown_by(found, "one")["charts"]
    monkeypatch.setattr(dashboard, "IDLE", 0.0)
    found._refresh()
    assert found._runs["one"].charts is None


def test_a_folder_that_goes_is_a_problem_that_is_shown(tmp_path):
    with pytest.raises(MainstemError, match="there is no such folder"):
        Folder(tmp_path / "none")
    found = looked(tmp_path)
    assert found.rows() == []
    with pytest.raises(MainstemError, match="takes no orders"):
        asyncio.run(found.order("a", "pause", ""))
