"""The drawings of docs/architecture.md and docs/formats/wire.md agree with the code, which says a thing once."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mainstem import experiment
from mainstem.engines.federate.protocol import state_format, versions
from mainstem.engines.federate.protocol.subjects import Subjects
from mainstem.run import comparator_cache, folder, model_file, trace

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "mainstem"


def drawn() -> list[list[set[str]]]:
    """The layers of each drawing, the uppermost first."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    blocks = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [
        [set(re.split(r"\s{2,}", line)[0].split(", ")) for line in block.splitlines()]
        for block in blocks
    ]


def contracted() -> list[list[set[str]]]:
    """The layers of each contract in pyproject.toml."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    return [
        [
            {name.rsplit(".", 1)[-1] for name in re.split(r" [:|] ", layer)}
            for layer in each["layers"]
        ]
        for each in tools["importlinter"]["contracts"]
        if each["type"] == "layers"
    ]


def test_the_layers_are_those_that_are_enforced() -> None:
    assert drawn() == contracted()


def test_every_package_and_module_is_in_the_drawing() -> None:
    everything, federation = (set().union(*layers) for layers in drawn())
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    private = {name for name in found if name.startswith("__")}
    assert (
        found - private - {"extend"} == everything
    )  # extend is one import for authors, of all layers
    found = {path.stem for path in (PACKAGE / "engines" / "federate").iterdir()}
    assert {name for name in found if not name.startswith("__")} == federation


def test_every_file_that_the_page_names_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    names = set(re.findall(r"`(?:[\w/]+/)?(\w+\.py)`", page))
    assert names
    assert not names - {path.name for path in PACKAGE.rglob("*.py")}


def test_the_wire_format_is_described() -> None:
    page = (ROOT / "docs" / "formats" / "wire.md").read_text()
    names = Subjects("RUN")
    subjects = {names.upload("CLIENT"), names.broadcast("N"), names.candidate("N"), names.document}
    subjects |= {names.status, names.control, names.hub_heartbeat, names.heartbeat("CLIENT")}
    subjects |= {
        names.refusals("CLIENT"),
        names.upload_stream,
        names.broadcast_stream,
        names.bucket,
    }
    assert not {name for name in subjects if f"`{name}`" not in page}


def test_pages_name_the_current_formats() -> None:
    formats = {
        "run-folder.md": f"# Run folder, format {folder.FORMAT}\n",
        "trace.md": f"# Trace, format {trace.FORMAT}\n",
        "model.md": f"# Model file, format {model_file.FORMAT}\n",
        "wire.md": f"# Wire format, version {versions.PROTOCOL}\n",
    }
    assert formats.keys() == {path.name for path in (ROOT / "docs" / "formats").glob("*.md")}
    for name, title in formats.items():
        page = (ROOT / "docs" / "formats" / name).read_text()
        assert page.startswith(title)
    assert f"## Stored state, format {state_format.FORMAT}\n" in page
    page = (ROOT / "docs" / "experiment-files.md").read_text()
    assert f"It is the version of the file format, {experiment.FORMAT};" in page


def test_the_changelog_names_the_current_formats() -> None:
    page = " ".join((ROOT / "CHANGELOG.md").read_text().split())
    numbers = {
        "run folders": folder.FORMAT,
        "traces": trace.FORMAT,
        "experiment files": experiment.FORMAT,
        "model files": model_file.FORMAT,
        "the wire": versions.PROTOCOL,
        "stored state": state_format.FORMAT,
    }
    text = ", ".join(f"{name} ({number})" for name, number in numbers.items())
    assert f"Formats have numbers: {text}." in page


def test_every_file_of_a_run_folder_is_described() -> None:
    page = (ROOT / "docs" / "formats" / "run-folder.md").read_text()
    files = {*folder.SEALED, "run.json", "environment.json", "lock", "checkpoint.npz"}
    files |= {f"{comparator_cache.FOLDER}/", "checkpoint-STEP-HOST.npz"}
    assert not {name for name in files if f"| `{name}`" not in page}


def listed(path: Path) -> Iterator[tuple[str, ...]]:
    """The constants of a module that are tuples of words."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            words = [it.value for it in node.value.elts if isinstance(it, ast.Constant)]
            if words and len(words) == len(node.value.elts):
                yield tuple(words)


def claimed(path: Path) -> Iterator[str]:
    """The statements of a paper that a module checks."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id="Claim"), args=[ast.Constant(value=statement), *_]):
                yield statement


@pytest.mark.parametrize("found", [listed, claimed])
def test_nothing_is_written_in_two_modules(found: Callable[[Path], Iterator[Any]]) -> None:
    places = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for each in found(path):
            places[each].add(path.relative_to(PACKAGE).as_posix())
    assert places
    assert not {each: where for each, where in places.items() if len(where) > 1}


@pytest.mark.parametrize(
    ("reads", "module"), [("random.INIT", "replay.py"), (".automatic", "step.py")]
)
def test_what_all_use_is_derived_in_one_module(reads: str, module: str) -> None:
    """The first model of a run, and the steps that are "auto": else engines and measures could differ."""
    assert [path.name for path in PACKAGE.rglob("*.py") if reads in path.read_text()] == [module]
