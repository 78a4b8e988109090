"""The fields of run.json, and checks that a loaded folder agrees with them."""

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mainstem.base.types import DTYPES
from mainstem.errors import BrokenRun
from mainstem.run import trace as traces


class Summary(NamedTuple):
    """The size of a run, and the size of one of its messages."""

    steps: int
    seeds: list[int]
    clients: int
    parameters: int  # of the model
    dtype: str
    shared: bool  # whether all clients decide with one model
    uplink_bits: float
    uplink_bytes: int
    downlink_bits: float
    downlink_bytes: int
    # For each seed that diverged: the seed, the step, how many clients had such a loss, and the first of them.
    diverged: list[list[int]]
    # The label of each class in the data, if it is not the number of the class.
    labels: list[Any] | None = None
    every: int = 1  # a row of the trace is the mean over so many steps
    names: list[str] | None = None  # of the clients, if the data names them


def _whole(least: int) -> Any:
    return lambda it: isinstance(it, int) and not isinstance(it, bool) and it >= least


def _amount(it: Any) -> bool:
    return isinstance(it, int | float) and not isinstance(it, bool) and 0 <= it < math.inf


_FIELDS = {
    "steps": ("a whole number of at least 1", _whole(1)),
    "seeds": (
        "a list of seeds",
        lambda it: isinstance(it, list) and it and all(map(_whole(0), it)),
    ),
    "clients": ("a whole number of at least 1", _whole(1)),
    "parameters": ("a whole number of at least 0", _whole(0)),
    "dtype": (" or ".join(DTYPES), lambda it: it in DTYPES),
    "shared": ("true or false", lambda it: isinstance(it, bool)),
    "uplink_bits": ("a number of at least 0", _amount),
    "uplink_bytes": ("a whole number of at least 0", _whole(0)),
    "downlink_bits": ("a number of at least 0", _amount),
    "downlink_bytes": ("a whole number of at least 0", _whole(0)),
    "diverged": (
        "a list of lists of at least three whole numbers",
        lambda it: (
            isinstance(it, list)
            and all(isinstance(each, list) and len(each) >= 3 for each in it)
            and all(map(_whole(0), itertools.chain(*it)))
        ),
    ),
    "labels": (
        "null or a list of words, truth values or numbers",
        lambda it: (
            it is None
            or (isinstance(it, list) and all(isinstance(each, str | int | float) for each in it))
        ),
    ),
    "every": ("a divisor of the steps", _whole(1)),
    "names": (
        "null or a list of words",
        lambda it: it is None or (isinstance(it, list) and all(isinstance(n, str) for n in it)),
    ),
}


def summary_of(path: Path, content: Mapping[str, Any]) -> Summary:
    """The summary in a folder's run.json; an error if a field is missing or invalid."""
    content = {"every": 1, "names": None, **content}  # older versions wrote neither
    for name, (wanted, fine) in _FIELDS.items():
        if name not in content:
            raise BrokenRun(f"{path}: run.json lacks {name}")
        if not fine(content[name]):
            raise BrokenRun(f"{path}: run.json: {name} must be {wanted}, not {content[name]!r:.60}")
    if content["names"] is not None and len(content["names"]) != content["clients"]:
        raise BrokenRun(f"{path}: run.json: names must have one for each client")
    if content["steps"] % content["every"]:
        raise BrokenRun(f"{path}: run.json: every must be a divisor of the steps")
    for seed, step, *_ in content["diverged"]:
        if seed not in content["seeds"] or not 1 <= step <= content["steps"]:
            raise BrokenRun(
                f"{path}: run.json: diverged has step {step} of seed {seed}, which the run does not have"
            )
    return Summary(**{name: content[name] for name in Summary._fields})


def check_spec(path: Path, spec: Mapping[str, Any]) -> None:
    """Raises an error for an invalid spec."""
    for name in ("problem", "stream", "simulate"):
        if not isinstance(spec.get(name), Mapping):
            raise BrokenRun(f"{path}: spec.toml lacks the table [{name}]")
    listed = spec.get("algorithm")
    first = listed[0] if isinstance(listed, list) and listed else None
    if not isinstance(first, Mapping) or not isinstance(first.get("name"), str):
        raise BrokenRun(f"{path}: spec.toml lacks an [[algorithm]] with a name")


def check_model(path: Path, model: Mapping[str, np.ndarray], of: Summary) -> None:
    """Raises an error for models of another size or kind."""
    if "server" not in model:
        raise BrokenRun(f"{path}: model.npz lacks the server's model")
    seeds = (len(of.seeds),) if len(of.seeds) > 1 else ()
    before = {"server": seeds, "average": seeds, "clients": (*seeds, of.clients)}
    for name, array in model.items():
        if name not in before:
            raise BrokenRun(f"{path}: model.npz holds {name}, which no run has")
        fits = array.shape[:-1] == before[name] and array.shape[-1:] <= (of.parameters,)
        if array.ndim == 0 or not fits or array.dtype.kind != "f":
            found = f"{array.dtype} of shape {array.shape}"
            raise BrokenRun(f"{path}: model.npz: {name} is {found}, not as run.json says")


def check_trace(path: Path, trace: traces.File, of: Summary) -> None:
    """Raises an error for a trace of another length or with columns that are not numeric."""
    if trace.rows != of.steps // of.every * len(of.seeds) or trace.seeds != len(of.seeds):
        found = f"{trace.rows} rows of {trace.seeds} seeds"
        raise BrokenRun(f"{path}: trace.parquet has {found}, not as run.json says")
    if "loss" not in trace:
        raise BrokenRun(f"{path}: trace.parquet has no column loss")
    for name, width in trace.widths.items():
        if width is None:
            raise BrokenRun(f"{path}: trace.parquet: the column {name} holds no numbers")
        if width != 1 and width % of.clients:
            raise BrokenRun(
                f"{path}: trace.parquet: the column {name} has {width} clients, run.json {of.clients}"
            )
