"""What was run: the algorithm with its equations, its settings, the experiment to run again, the environment."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import tomli_w

from mainstem.errors import MainstemError
from mainstem.report.formulas import mathml
from mainstem.run import folder as folders
from mainstem.run.labels import short
from mainstem.run.run import Run
from mainstem.spec import unnamed
from mainstem.value.documented import equations, summary

SPEC = 100_000  # characters of an experiment that is shown


def described(label: str, run: Run) -> dict[str, Any]:
    """What one run is: its algorithm and equations, its settings, and its experiment file."""
    spec, size = run.spec, run.summary
    kind = None if run.algorithm is None else type(run.algorithm)
    settings = {k: v for k, v in spec["simulate"].items() if v not in ([], None)}
    facts = {
        "Algorithm": repr(run.algorithm or short(spec["algorithm"][0])),
        "Problem": repr(run.problem or short(spec["problem"])),
        "Stream": short(spec["stream"]),
        "Size": f"{size.steps} steps, {size.clients} clients, {size.parameters} parameters",
        "Seeds": ", ".join(map(str, size.seeds)),
        "Settings": ", ".join(f"{k}={short(v)}" for k, v in settings.items()),
    }
    if run.folder is not None:
        facts["Folder"] = os.path.relpath(run.folder)
    toml = tomli_w.dumps(spec)
    whole = len(toml) <= SPEC
    facts["Command"] = _command(run, whole)
    return {
        "name": label,
        "about": "" if kind is None else summary(kind),
        "equations": [] if kind is None else [_formula(each) for each in equations(kind)],
        "facts": list(facts.items()),
        "heading": "The experiment, as a file" if whole else f"The experiment, {_cut(run)}",
        "toml": toml if whole else f"{toml[:SPEC]}\n# ... {_cut(run)}\n",
    }


def _command(run: Run, shown: bool) -> str:
    """The command that runs the experiment again, or why there is none; `shown`: the page has all of the file."""
    words = json.dumps(run.spec)
    if (
        any(mark in words for mark in ('"array ', '"code ', " sha256 "))
        or unnamed(run.spec) is not None
    ):
        return "none: some of this was in memory, or code without a name, so that a file alone cannot run it again"
    if run.folder is not None:
        return shlex.join(["mainstem", "run", os.path.relpath(run.folder / "spec.toml")])
    if shown:
        return "mainstem run experiment.toml, with the experiment below saved in this file"
    return "mainstem run FOLDER/spec.toml, after run.save(FOLDER): the experiment is too long for a page"


def _cut(run: Run) -> str:
    """What a page says of an experiment that is too long for it."""
    place = "the file that run.save(FOLDER) writes"
    if run.folder is not None:
        place = os.path.relpath(run.folder / "spec.toml")
    return f"only its first {SPEC} characters: the whole one is {place}"


def _formula(latex: str) -> str:
    try:
        return mathml(latex, block=True)
    except (MainstemError, ImportError):
        return latex


def environment(run: Run) -> list[tuple[str, str]]:
    """Versions and devices: those in the run's folder, or of this process."""
    found = folders.environment() if run.folder is None else _noted(run.folder)
    packages = found.pop("packages", {})
    found.pop("resumed", None)
    shown = {key: ", ".join(map(str, v)) if isinstance(v, list) else v for key, v in found.items()}
    return [(name, str(value)) for name, value in (shown | packages).items()]


def _noted(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / "environment.json").read_text()))
    except (OSError, ValueError):
        return {}
