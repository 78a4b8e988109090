"""The glossary has every term of the command line, the files and the API."""

import inspect
import re
from pathlib import Path

import pytest
import typer
from nats.aio.client import Client

import mainstem as ms
from mainstem import algorithms, experiment, parts, problems, streams, theory
from mainstem.cli import app
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.protocol.rules import Rules
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.run import Run
from mainstem.run.summary import Summary

PAGE = Path(__file__).parents[1] / "docs" / "glossary.md"


def section(title: str) -> set[str]:
    """The terms in the first column of the tables of a section, and in its text."""
    body = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert body, f"docs/glossary.md has no section {title}"
    lines = body[1].splitlines()
    terms = [line.split("|")[1] if line.startswith("|") else line for line in lines]
    return {term for text in terms for term in re.findall(r"`(\w+)`", text)}


def commands() -> list[typer.core.TyperCommand]:
    top = typer.main.get_command(app)
    groups = [each for each in top.commands.values() if hasattr(each, "commands")]
    return [*top.commands.values(), *(sub for group in groups for sub in group.commands.values())]


def test_commands() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.read_text()))
    assert {command.name for command in commands()} <= named


def test_options() -> None:
    given = {
        option.lstrip("-").replace("-", "_")
        for command in commands()
        for parameter in command.params
        for option in ([o for o in parameter.opts if o.startswith("--")] or [parameter.name])
    }
    assert not given - section("Options")


def test_keys_of_files() -> None:
    wanted = {*experiment.TABLES, *experiment.SETTINGS, *Rules._fields, "federate", "format"}
    assert not wanted - section("Keys of experiment files")
    assert not set(Summary._fields) - section("Fields of `run.json`")


def test_fields_of_a_status() -> None:
    document = parse(
        {
            "problem": {"name": "linear", "features": 2},
            "algorithm": {"name": "fedogd", "step": 0.1},
            "federate": {"clients": 1},
        }
    )
    status = Hub(document, Client()).status()
    assert not {*status, *status["clients"]["0"]} - section("Fields of a status")


@pytest.mark.parametrize("module", [algorithms, parts, problems, streams, theory, ms])
def test_parameters(module) -> None:
    known = section("Parameters") | section("Keys of experiment files") | section("Options")
    for name in module.__all__:
        made = getattr(module, name)
        if callable(made) and not (inspect.isclass(made) and module in (theory, ms)):
            missing = set(inspect.signature(made).parameters) - known
            assert not missing, f"{name} has parameters that the glossary does not: {missing}"


def test_attributes_of_a_run() -> None:
    attributes = {name for name in vars(Run) if not name.startswith("_")}
    assert not attributes - section("Members of a run")


def test_columns_of_a_trace() -> None:
    digits = ms.streams.digits(clients=4)
    softmax = ms.problems.softmax(features=64, classes=10)
    sea, quadratic = ms.streams.sea_quadratic(4, dimension=2), ms.problems.quadratic(2)
    knows = ["collective", "consensus", "expected", "virtual"]
    runs = [
        ms.simulate(ms.fedsea(0.1, period=2), quadratic, sea, steps=4, measure=knows),
        ms.simulate(ms.fedogd(0.1), softmax, ms.streams.sometimes(digits, rate=0.5), steps=4),
    ]
    for run in runs:
        assert not set(run.columns) - section("Columns of a trace")
