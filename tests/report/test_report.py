"""Reports as files: their size, their content, and how commands write them."""

import base64
import json
import os
import re
import shlex
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mainstem as ms
from mainstem.errors import Diverged, MainstemError
from mainstem.report.decimation import kept
from mainstem.run.reporting.content import of_runs
from tests.cli.command import mainstem
from tests.report.conftest import HOSTILE

LIMIT = 5_000_000


@pytest.mark.slow
def test_a_page_of_a_million_steps_is_small(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    stream = ms.streams.arrays(draw.normal(size=(64, 2)), draw.integers(0, 2, 64), clients=2)
    problem = ms.problems.logistic(features=2)
    runs = [
        ms.simulate(ms.fedogd(step), problem, stream, steps=1000, seeds=2) for step in (0.1, 1.0)
    ]
    for run in runs:  # a thousand times over: what a long run has, without its computation
        run.trace = {name: np.tile(column, 1000) for name, column in run.trace.items()}
        run.summary = run.summary._replace(steps=1_000_000)
    page = ms.compare(runs).report(tmp_path / "report.html")
    assert page.stat().st_size < LIMIT


def embedded(page: Path) -> Any:
    """The content of a page."""
    inside = re.search(
        r'<script type="application/json" id="content">(.*?)</script>', page.read_text(), re.DOTALL
    )
    assert inside is not None
    return json.loads(inside[1])


def section_of(run: ms.Run, name: str) -> Any:
    """A section of the content for a run."""
    sections = of_runs(ms.compare(run), regret=False)["sections"]
    return next(each for each in sections if each["id"] == name)


def test_thinning_keeps_extremes_and_ends() -> None:
    draw = np.random.default_rng(0)
    curve = draw.normal(size=100_003)
    curve[777] = np.nan
    places = kept(curve, 1000)
    assert len(places) <= 1000
    assert {0, len(curve) - 1, int(np.nanargmax(curve)), int(np.nanargmin(curve))} <= {*places}
    assert (np.diff(places) > 0).all()
    assert len(kept(np.full(5000, np.nan), 100)) <= 100


def test_a_hostile_name_cannot_end_the_script(report: Path) -> None:
    assert HOSTILE not in report.read_text()
    assert [run["name"] for run in embedded(report)["runs"]][2] == HOSTILE


def test_the_content_says_what_was_run(runs: dict[str, ms.Run]) -> None:
    content = of_runs(ms.compare(runs))
    facts = dict(content["runs"][1]["facts"])
    assert facts["Algorithm"] == "ofedavg(step=0.1, rate=0.5)"
    assert facts["Size"] == "60 steps, 6 clients, 4 parameters"
    assert content["runs"][1]["equations"][0].startswith("<math")
    assert "mainstem" in dict(content["environment"])
    assert {each["id"] for each in content["sections"]} == {
        "performance",
        "regret",
        "communication",
        "clients",
        "conditions",
    }


def test_the_page_says_whether_a_file_can_run_it_again(runs: dict[str, ms.Run]) -> None:
    big = ms.streams.arrays(np.ones((5000, 3)), np.ones(5000, int), clients=6)
    in_memory = ms.simulate(ms.fedogd(0.1), ms.problems.logistic(3), big, steps=2)
    digits = ms.simulate(ms.fedogd(0.1), ms.problems.softmax(64, 10), ms.streams.digits(5), steps=2)
    for run, expected in ((in_memory, "cannot run it again"), (digits, "mainstem run")):
        (shown,) = of_runs(ms.compare(run), regret=False)["runs"]
        assert expected in dict(shown["facts"])["Command"]


def test_the_command_of_a_saved_run_runs_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, problem = ms.streams.digits(5), ms.problems.softmax(64, 10)
    folder = tmp_path / "first run"
    run = ms.simulate(ms.fedogd(0.1), problem, stream, steps=2, folder=folder)
    monkeypatch.chdir(tmp_path)
    (shown,) = of_runs(ms.compare(run), regret=False)["runs"]
    command = dict(shown["facts"])["Command"]
    assert command == "mainstem run 'first run/spec.toml'"
    done = mainstem(tmp_path, *shlex.split(command)[1:], "--json")
    assert done.returncode == 0, done.stderr
    again = ms.load(tmp_path / json.loads(done.stdout)["runs"][0]["folder"])
    np.testing.assert_array_equal(again.loss, run.loss)


def test_an_experiment_that_is_too_long_is_not_called_a_file(tmp_path: Path) -> None:
    draw = np.random.default_rng(0).normal(size=(2, 4000))
    stream = ms.streams.arrays(draw[0][:, None], draw[1], clients=4)
    run = ms.simulate(ms.fedogd(0.1), ms.problems.linear(1), stream, steps=2)
    (shown,) = of_runs(ms.compare(run), regret=False)["runs"]
    assert "after run.save(FOLDER)" in dict(shown["facts"])["Command"]
    run.save(tmp_path / "long")
    (shown,) = of_runs(ms.compare(run), regret=False)["runs"]
    whole = os.path.relpath(tmp_path / "long" / "spec.toml")
    assert shown["heading"].endswith(f"the whole one is {whole}")
    assert dict(shown["facts"])["Command"] == f"mainstem run {whole}"


def test_delays_and_heterogeneity_are_shown() -> None:
    stream, problem = ms.streams.sea_quadratic(4, dimension=2), ms.problems.quadratic(2)
    network = ms.network(up=[0, 1, 2, 3])
    run = ms.simulate(ms.fedogd(0.1), problem, stream, steps=20, network=network)
    conditions = section_of(run, "conditions")
    assert "up 0 to 3 steps (median 1.5)" in conditions["texts"][0]
    lines = conditions["charts"][1]["lines"]
    assert [line["name"] for line in lines] == ["noise", "clients", "time"]
    shown = np.frombuffer(base64.b64decode(lines[1]["y"]["f4"]), "<f4")
    found = ms.measure.heterogeneity(ms.measure.Prefix(problem, stream, 20))
    np.testing.assert_allclose(shown, found.spatial, rtol=1e-6)


def test_the_ways_of_messages_are_measured_in_steps() -> None:
    """Syncs at 2, 4, ..., 10. The first client's message is merged at once and back one sync later; the second's
    comes two syncs later, and is back at once."""
    run = ms.simulate(
        ms.fedomd(0.1, sync=ms.parts.every(2)),
        ms.problems.softmax(64, 10),
        ms.streams.digits(2),
        steps=10,
        network=ms.network(up=[0, 3], down=[1, 0]),
    )
    conditions = section_of(run, "conditions")
    table, *_ = conditions["tables"]
    titles = [each["title"] for each in table["columns"]]
    shown = [dict(zip(titles, (cell["by"] for cell in row), strict=True)) for row in table["rows"]]
    names = ("least", "median", "mean", "greatest")
    assert [[row[name] for name in names] for row in shown] == [
        pytest.approx([0, 0, 3 * 4 / 8, 4]),
        pytest.approx([0, 2, 4 * 2 / 7, 2]),
        pytest.approx([2, 2, (4 * 2 + 3 * 4) / 7, 4]),
    ]
    (line,) = conditions["charts"][0]["lines"]
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(line["y"]["f4"]), "<f4"), [2, 4])


def test_heterogeneity_of_real_data_is_estimated() -> None:
    problem, stream = ms.problems.linear(2), sites()
    run = ms.simulate(ms.fedogd(0.1), problem, stream, steps=60)
    (table,) = section_of(run, "conditions")["tables"]
    assert "estimated from the first 60 steps" in table["caption"]
    prefix = ms.measure.Prefix(problem, stream, 60)
    expected = ms.measure.spread(prefix, run.models["server"])
    assert [row[1]["by"] for row in table["rows"]] == pytest.approx(
        [expected.noise.value, expected.spatial.value]
    )


def test_an_estimate_that_takes_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainstem.run.reporting.conditions.WORK", 100)
    run = ms.simulate(ms.fedogd(0.1), ms.problems.linear(2), sites(), steps=60)
    conditions = section_of(run, "conditions")
    assert conditions["tables"] == []
    assert "it takes a while: ms.measure.spread" in conditions["texts"][-1]


def test_a_diverged_run_has_a_report(runs: dict[str, ms.Run], tmp_path: Path) -> None:
    first = next(iter(runs.values()))
    assert first.stream is not None
    with pytest.warns(Diverged):
        run = ms.simulate(ms.fedogd(1e30), ms.problems.linear(3), first.stream, steps=60)
    assert run.report(tmp_path / "report.html").exists()
    assert of_runs(ms.compare(run))["warnings"]


def test_the_command_reports_saved_runs(runs: dict[str, ms.Run], tmp_path: Path) -> None:
    for n, run in enumerate(list(runs.values())[:2]):
        run.save(tmp_path / "runs" / str(n))
    page = tmp_path / "page.html"
    done = mainstem(tmp_path, "report", "runs", "-o", str(page), "--no-regret", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["report"] == str(page)
    assert page.stat().st_size < LIMIT


def test_the_command_refuses_what_is_no_run(tmp_path: Path) -> None:
    done = mainstem(tmp_path, "report", "none")
    assert done.returncode == 1
    assert "there is no such run folder" in done.stderr


def test_a_folder_is_no_page(runs: dict[str, ms.Run], tmp_path: Path) -> None:
    run = next(iter(runs.values()))
    with pytest.raises(MainstemError, match=r"is a folder: name a file, such as .*report\.html"):
        run.report(tmp_path, regret=False)
    assert run.report(tmp_path / "new" / "page.html", regret=False).exists()


def test_an_experiment_file_leaves_a_report(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(
        '[problem]\nname = "softmax"\nfeatures = 64\nclasses = 10\n'
        '[stream]\nname = "digits"\nclients = 5\n'
        '[[algorithm]]\nname = "fedogd"\nstep = 0.5\n[simulate]\nsteps = 10\n'
    )
    done = mainstem(tmp_path, "run", "small.toml", "--json")
    assert done.returncode == 0, done.stderr
    page = tmp_path / json.loads(done.stdout)["report"]
    assert page.stat().st_size < LIMIT
    assert embedded(page)["command"] == "mainstem run small.toml"
    done = mainstem(tmp_path, "run", "small.toml", "--json")  # finished: the page is written again
    assert done.returncode == 0, done.stderr


def test_a_sweep_shows_its_command(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(
        '[problem]\nname = "softmax"\nfeatures = 64\nclasses = 10\n'
        '[stream]\nname = "digits"\nclients = 5\n[[algorithm]]\nname = "fedogd"\n'
        '[simulate]\nsteps = 10\n[sweep]\n"algorithm.step" = [0.1, 1.0]\n'
    )
    done = mainstem(tmp_path, "sweep", "grid.toml", "--set", "simulate.steps=5", "--json")
    assert done.returncode == 0, done.stderr
    page = tmp_path / json.loads(done.stdout)["report"]
    assert embedded(page)["command"] == "mainstem sweep grid.toml --set simulate.steps=5"


def test_runs_of_other_versions_and_resumed_ones_are_distinguished(
    runs: dict[str, ms.Run], tmp_path: Path
) -> None:
    saved = {}
    for label, run in zip("abc", runs.values(), strict=True):
        run.save(tmp_path / label)
        saved[label] = ms.load(tmp_path / label)
    here = dict(of_runs(ms.compare(saved), regret=False)["environment"])
    assert here["jax"] == version("jax")
    file = tmp_path / "b" / "environment.json"
    noted = json.loads(file.read_text())
    old, device = noted | {"packages": noted["packages"] | {"jax": "0.0.1"}}, ["a GPU"]
    file.write_text(json.dumps(old | {"resumed": [noted | {"devices": device}]}))
    shown = dict(of_runs(ms.compare(saved), regret=False)["environment"])
    assert shown["jax"] == f"{here['jax']} (a, c); 0.0.1, resumed: {here['jax']} (b)"
    assert shown["devices"] == f"{here['devices']} (a, c); {here['devices']}, resumed: a GPU (b)"
    assert shown["python"] == here["python"]


@pytest.mark.parametrize("content", ["3", "[1]", "null", '{"packages": [1]}', '{"resumed": 3}'])
def test_an_environment_that_is_none_does_not_end_the_report(
    content: str, runs: dict[str, ms.Run], tmp_path: Path
) -> None:
    next(iter(runs.values())).save(tmp_path / "a")
    (tmp_path / "a" / "environment.json").write_text(content)
    assert of_runs(ms.compare(ms.load(tmp_path / "a")), regret=False)["environment"] == []


def sites() -> ms.streams.arrays:
    """Four sites with a name; the later ones have more noise."""
    draw = np.random.default_rng(0)
    rows, site = draw.normal(size=(400, 2)), np.arange(400) % 4
    target = rows[:, 0] + site * draw.normal(size=400)
    return ms.streams.arrays(rows, target, keys=np.array(["oak", "elm", "ash", "yew"])[site])


def test_an_experiment_file_has_the_best_and_the_worst_clients_by_name(tmp_path: Path) -> None:
    stream = sites()
    table = np.column_stack([stream.features, stream.target])
    lines = [f"{a},{b},{y},{k}" for (a, b, y), k in zip(table, stream.keys, strict=True)]
    (tmp_path / "sites.csv").write_text("a,b,load,site\n" + "\n".join(lines) + "\n")
    (tmp_path / "sites.toml").write_text(
        '[problem]\nname = "linear"\nfeatures = 2\n'
        '[stream]\nname = "csv"\npath = "sites.csv"\ntarget = "load"\nkey = "site"\n'
        '[[algorithm]]\nname = "fedomd"\nstep = 0.1\n[simulate]\nsteps = 100\n'
    )
    done = mainstem(tmp_path, "run", "sites.toml", "--json")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    (section,) = [
        each
        for each in embedded(tmp_path / written["report"])["sections"]
        if each["id"] == "clients"
    ]
    assert [each["title"] for each in section["charts"]] == [
        "Mean loss of each client",
        "Mean squared error of each client",
    ]
    run = ms.load(tmp_path / written["runs"][0]["folder"])
    assert "collective" in run.trace  # as without the measures of each client
    losses = run.column("loss per client").mean(axis=0)
    names = [row[0]["text"] for row in section["tables"][0]["rows"]]
    assert names == [["ash", "elm", "oak", "yew"][k] for k in np.argsort(losses)]
    assert names[0] == "oak"
    shown = [row[2]["by"] for row in section["tables"][0]["rows"]]
    errors = run.column("squared_error per client").mean(axis=0)
    np.testing.assert_allclose(shown, errors[np.argsort(losses)], rtol=1e-6)


def test_many_numbers_of_clients_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainstem.engines.simulate.admission.NUMBERS", 200)
    problem, stream = ms.problems.softmax(64, 10), ms.streams.digits(clients=2)
    given = {"problem": problem, "stream": stream, "steps": 300}
    run = ms.simulate(ms.fedogd(0.1), **given, measure=["clients"])
    assert {"loss_per_client_every_11", "correct_per_client_every_11"} < set(run.columns)
    section = section_of(run, "clients")
    assert section["texts"] == ["fedogd: means over every n-th step, n = 11."]
    whole = ms.simulate(ms.fedogd(0.1), **given, measure=["loss per client"])
    expected = whole.column("loss per client")[10::11].mean(axis=0)
    shown = {row[0]["by"]: row[1]["by"] for row in section["tables"][0]["rows"]}
    np.testing.assert_allclose([shown[0], shown[1]], expected, rtol=1e-6)
    crowd = ms.streams.digits(clients=200)  # fewer than 20 steps would fit
    run = ms.simulate(ms.fedogd(0.1), problem, crowd, steps=300, measure=["clients"])
    assert not any("per_client" in name for name in run.columns)


def test_runs_on_other_data_are_refused(runs: dict[str, ms.Run]) -> None:
    other = ms.simulate(
        ms.fedogd(0.1),
        ms.problems.logistic(3),
        ms.streams.arrays(np.ones((8, 3)), np.ones(8, int), 6),
        steps=4,
    )
    with pytest.raises(MainstemError, match="same stream"):
        ms.compare([*runs.values(), other])
