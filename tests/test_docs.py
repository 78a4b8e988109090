"""The documentation is complete: what is exported is described, and what is shown runs."""

import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mainstem as ms
from docs.conftest import WRITTEN
from mainstem import algorithms, experiment, extend, parts, problems, streams
from mainstem.base import Algorithm
from mainstem.cli import app
from mainstem.spec import name_of, plain
from mainstem.value import parameters
from tests.plugin import dist_info

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SKELETON = DOCS / "add-an-algorithm.md"


def described(page: Path) -> set[str]:
    """The names in the first column of the page's tables."""
    return set(re.findall(r"^\| \[?`(\w+)", page.read_text(), re.MULTILINE))


@pytest.mark.parametrize("module", [parts, problems, streams], ids=lambda module: module.__name__)
def test_every_exported_name_is_in_the_tables(module: ModuleType) -> None:
    missing = set(module.__all__) - described(DOCS / "parts.md")
    assert not missing, f"docs/parts.md has no row for {sorted(missing)}"


def test_every_algorithm_has_a_row_and_every_preset_a_page() -> None:
    names = set(algorithms.__all__)
    assert names == described(DOCS / "algorithms" / "README.md")
    presets = {name for name in names if name[0].islower()}
    assert presets == {page.stem for page in (DOCS / "algorithms").glob("*.md")} - {"README"}


@pytest.mark.parametrize("module", [ms, extend], ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module: ModuleType) -> None:
    """By the page, or, for the classes and functions of `extend`, by the hook that fills it."""
    page = (DOCS / "reference" / f"{module.__name__.rpartition('.')[2]}.md").read_text()
    exported = {name: getattr(module, name) for name in module.__all__}
    named = set(re.findall(r"`(\w+)`", page))
    if "<!-- the names of mainstem.extend -->" in page:
        named |= {
            name for name, it in exported.items() if inspect.isclass(it) or inspect.isfunction(it)
        }
    assert not exported.keys() - named, f"{sorted(exported.keys() - named)} is missing"


def test_docstrings_become_markdown() -> None:
    pytest.importorskip("griffe", reason="the extra docs is not installed")
    from tools.docs.docstrings import as_markdown

    docstring = "The rate :math:`p_k` of <a, b>.\n\n.. math:: x +\n          y\n\n>>> 1 + 1\n2"
    parts = ["The rate $p_k$ of &lt;a, b>.", "$$\nx + y\n$$", "```pycon\n>>> 1 + 1\n2\n```"]
    assert as_markdown(docstring) == "\n\n".join(parts)


def test_every_command_is_in_the_reference() -> None:
    page = (DOCS / "reference" / "cli.md").read_text()
    commands = [*app.registered_commands, *app.registered_groups]
    listed = set(re.findall(r"^\| `(.+?)`", page, re.MULTILINE))
    assert listed == {f"mainstem {each.name}" for each in commands}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_session_is_a_doctest(page: Path) -> None:
    """Output ends at a blank line, so a fence must follow one.

    Other Python is executed below, or is a module that `docs/conftest.py` writes and a session imports.
    """
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    modules = {code: name for name, code in WRITTEN.findall(page.read_text())}
    for language, body in blocks:
        assert (language == "pycon") == body.startswith(">>> ")
        assert language != "pycon" or body.endswith("\n\n"), "wants a blank line before the fence"
        if language == "python" and page != SKELETON:
            assert f">>> from {modules.get(body)} import " in page.read_text(), (
                "is shown but never run"
            )


def test_the_experiment_file_is_one() -> None:
    page = (DOCS / "experiment-files.md").read_text()
    (shown,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    asked = experiment.build(tomllib.loads(shown))
    assert [name_of(each) for each in asked.algorithms] == ["fedogd", "ofediq", "fedomd"]
    assert asked.settings["steps"] == 50


def test_the_file_for_untidy_data_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "bring-your-own-data.md").read_text()
    (shown,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    rows = [
        f"2024-05-01 {n:02}:00:00,{'ab'[n % 2]},{n},{'off' if n % 3 else 'on'}," for n in range(20)
    ]
    cells = [row + ("" if n % 5 == 4 else "1") for n, row in enumerate(rows)]
    (tmp_path / "sites.csv").write_text("\n".join(["time,site,heat,state,rain", *cells]))
    monkeypatch.chdir(tmp_path)
    asked = experiment.build(tomllib.loads(shown))
    run = ms.simulate(asked.algorithms[0], asked.problem, asked.stream, steps=10)
    assert asked.stream.labels == ("off", "on")
    assert np.isfinite(run.loss).all()


def test_every_setting_and_deal_is_described() -> None:
    page = (DOCS / "experiment-files.md").read_text()
    for name in (*experiment.SETTINGS, *experiment.DEALS):
        assert f"`{name}`" in page


def blocks(language: str = "python") -> list[str]:
    """The blocks of the page on adding an algorithm; in Python the skeleton, a trial, the contract."""
    return re.findall(rf"^```{language}\n(.*?)^```", SKELETON.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The names that the skeleton defines, installed as the page describes, the way pip leaves it."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "fedmomentum.py").write_text(blocks()[0])
    dist_info.installed(folder, tomllib.loads(*blocks("toml"))["project"])
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield vars(importlib.import_module("fedmomentum"))
        sys.modules.pop("fedmomentum")


def simulated(algorithm: Algorithm, **options: Any) -> ms.Run:
    problem = ms.problems.softmax(features=64, classes=10)
    return ms.simulate(algorithm, problem, ms.streams.digits(clients=10), steps=30, **options)


TAKEN = (
    "FedRes.SGD and `central` have a `period` in the place of `sync` and hear all clients, FedRes.ERM, "
    "`fictitious_play` and `independent` take none"
)


@pytest.mark.parametrize(
    "page", ["README.md", "CHANGELOG.md", "docs/parts.md", "docs/algorithms/README.md"]
)
def test_pages_say_which_algorithms_take_which_parts(page: str) -> None:
    assert TAKEN in " ".join((ROOT / page).read_text().split())


def test_the_algorithms_take_the_parts_that_pages_say() -> None:
    classes = {name for name in algorithms.__all__ if name[0].isupper()}
    takes = {name: set(parameters(getattr(algorithms, name))) for name in algorithms.__all__}
    others = {name: names for name, names in takes.items() if "of" not in names}  # no wrappers
    usual = {"participation", "codec", "collect", "downlink"}
    assert {name for name in others if not usual & others[name]} == {
        *("Resolve", "fedres_erm", "fictitious_play", "independent")
    }
    assert {name for name in classes if usual < takes[name]} == classes - {"Resolve"}
    assert {name for name in classes if "period" in takes[name]} == {"FollowResiduals"}
    for name in ("FollowResiduals", "fedres_sgd", "central"):
        assert "sync" not in takes[name]
        with pytest.raises(ms.MainstemError, match=r"participation must be everyone\(\)"):
            getattr(algorithms, name)(0.1, participation=parts.exactly(5))


def test_every_fact_and_method_of_an_algorithm_is_described() -> None:
    page = SKELETON.read_text()
    rows = "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("|"))
    names = {name for name in vars(Algorithm) if not name.startswith("_")} - {"check"}
    names |= {f"mx.{name}" for name in extend.__all__ if name.startswith("any_")}
    assert not {name for name in names if not re.search(rf"`{re.escape(name)}\b", rows)}
    assert "`check(problem, samples, steps)`" in page


def test_skeleton_is_about_sixty_lines() -> None:
    code = [line for line in blocks()[0].splitlines() if line.strip()]
    assert len(code) < 80


@pytest.mark.slow
def test_skeleton_trial_runs(skeleton: dict[str, Any]) -> None:
    exec(compile(blocks()[1], str(SKELETON), "exec"), dict(skeleton))


def test_skeleton_is_known_in_files(skeleton: dict[str, Any]) -> None:
    for made in (skeleton["fedmomentum"](0.2, rate=0.5), skeleton["Momentum"](0.2)):
        assert experiment.made("spec", algorithms, plain(made)) == made


def test_skeleton_without_momentum_is_ofedavg(skeleton: dict[str, Any]) -> None:
    ours = simulated(skeleton["fedmomentum"](step=0.2, momentum=0.0, rate=0.5))
    theirs = simulated(ms.ofedavg(step=0.2, rate=0.5))
    np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-4)
    np.testing.assert_array_equal(ours.uplink_bits, theirs.uplink_bits)


def test_skeleton_follows_its_equations(skeleton: dict[str, Any]) -> None:
    """v <- mu v + (1 - mu) mean gradient, w <- w - eta v, on losses |w - a|^2 / 2 with one fixed target."""
    target = np.array([1.0, -2.0])
    stream = ms.streams.generated(lambda key, t, k: ((), target), clients=3)
    algorithm = skeleton["Momentum"](step=0.1, momentum=0.5)
    run = ms.simulate(
        algorithm, ms.problems.quadratic(dimension=2), stream, steps=20, dtype="float64"
    )
    params, velocity = np.zeros(2), np.zeros(2)
    for loss in run.loss:
        assert loss == pytest.approx(np.sum((params - target) ** 2) / 2, rel=1e-10)
        velocity = 0.5 * velocity + 0.5 * (params - target)
        params = params - 0.1 * velocity
    np.testing.assert_allclose(run.model, params, rtol=1e-10)


def test_skeleton_survives_delays(skeleton: dict[str, Any]) -> None:
    """At most syncs of a slow network nothing arrives, and the server then stays where it is."""
    run = simulated(skeleton["Momentum"](step=0.2, momentum=0.5), network=ms.network(up=9))
    np.testing.assert_allclose(run.loss[:10], np.log(10), rtol=1e-5)
    assert abs(run.loss[10] - np.log(10)) > 1e-3


@pytest.mark.slow
def test_skeleton_fulfils_the_contract(skeleton: dict[str, Any]) -> None:
    """The page's last block calls `check_algorithm`."""
    assert "check_algorithm(fedmomentum(" in blocks()[2]
    exec(compile(blocks()[2], str(SKELETON), "exec"), dict(skeleton))


def test_every_dependency_is_described() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    named = {re.split(r"[\[<>=~]", line)[0] for group in groups for line in group} - {"mainstem"}
    page = (DOCS / "dependencies.md").read_text()
    rows = set(re.findall(r"[\w-]+", " ".join(re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE))))
    assert not named - rows
