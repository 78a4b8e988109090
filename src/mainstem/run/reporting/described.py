"""What was run: the algorithm with its equations, its settings, the experiment to run again, the environment."""

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from mainstem.errors import MainstemError
from mainstem.report.formulas import mathml
from mainstem.run import folder as folders
from mainstem.run.labels import short
from mainstem.run.rebuilding import made_again
from mainstem.run.run import Run
from mainstem.spec import CODE, unnamed
from mainstem.value.documented import equations, summary

SPEC = 100_000  # characters of an experiment that is shown


def described(label: str, run: Run) -> dict[str, Any]:
    """What one run is: its algorithm and equations, its settings, and its experiment file."""
    spec, size = run.spec, run.summary
    kind = None if run.algorithm is None else run.algorithm.documented
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
        "heading": "The experiment" if whole else f"The experiment, {_cut(run)}",
        "toml": toml if whole else f"{toml[:SPEC]}\n# ... {_cut(run)}\n",
    }


def _command(run: Run, shown: bool) -> str:
    """The command that runs the experiment again, or why there is none; `shown`: the page has all of the file."""
    words = json.dumps(_without_code(run.spec))
    in_memory = any(mark in words for mark in ('"array ', '"code ', " sha256 "))
    if in_memory or unnamed(run.spec) is not None or not made_again(run.spec):
        return "none: some of this was in memory, or code without a name, so that a file alone cannot run it again"
    if run.folder is not None:
        return shlex.join(["mainstem", "run", os.path.relpath(run.folder / "spec.toml")])
    if shown:
        return "mainstem run experiment.toml, with the experiment below saved in this file"
    return "mainstem run FOLDER/spec.toml, after run.save(FOLDER): the experiment is too long for a page"


def _without_code(spec: Any) -> Any:
    """A spec without the fingerprints of classes: these are made by their names."""
    if isinstance(spec, Mapping):
        return {name: _without_code(each) for name, each in spec.items() if name != CODE}
    return [_without_code(each) for each in spec] if isinstance(spec, list) else spec


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


def environment(runs: Mapping[str, Run]) -> list[tuple[str, str]]:
    """Versions and devices: those in the folders of the runs, or of this process; whose, where they differ."""
    found = {label: _environment(run) for label, run in runs.items()}
    rows = []
    for name in dict.fromkeys(name for each in found.values() for name in each):
        whose: dict[str, list[str]] = {}
        for label, each in found.items():
            whose.setdefault(each.get(name, "unknown"), []).append(label)
        several = len(whose) > 1
        values = [f"{value} ({', '.join(n)})" if several else value for value, n in whose.items()]
        rows.append((name, "; ".join(values)))
    return rows


def _environment(run: Run) -> dict[str, str]:
    """Where a run was computed, by name; the places where it was resumed behind the one where it began."""
    places = [_plain(folders.environment())] if run.folder is None else _noted(run.folder)
    names = dict.fromkeys(name for place in places for name in place)
    return {
        name: ", resumed: ".join(dict.fromkeys(place.get(name, "unknown") for place in places))
        for name in names
    }


def _plain(place: Mapping[str, Any]) -> dict[str, str]:
    """An environment as text, its packages among the rest."""
    flat = {**place, **place.get("packages", {})}
    listed = {k: ", ".join(map(str, v)) if isinstance(v, list) else v for k, v in flat.items()}
    return {
        name: str(value) for name, value in listed.items() if name not in ("packages", "resumed")
    }


def _noted(folder: Path) -> list[dict[str, str]]:
    """Where the run of a folder began and was resumed; nothing if its file says something else."""
    try:
        begun = json.loads((folder / "environment.json").read_text())
        return [_plain(place) for place in (begun, *begun.get("resumed", []))]
    except (OSError, ValueError, TypeError, AttributeError):
        return []
