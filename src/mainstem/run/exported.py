"""Export: the final model of a run as a file for other programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.base import Flat, Problem
from mainstem.errors import BadData, BadParameter
from mainstem.run.model_file import save_model
from mainstem.run.preparation import history, parts_in
from mainstem.value import fingerprint

ROWS = {  # what has rows, by the name of its table
    "arrays": ("features", "target", "keys"),
    "sparse_rows": ("columns", "numbers"),
}


def exported(
    run: Any,
    path: Path,
    client: int | str | None,
    seed: int | None,
    features: Sequence[str] | None,
) -> Path:
    """Writes the model of a run; see `Run.export`."""
    if run.problem is None:
        raise BadData("export: the run's problem is not known: ms.load(folder, problem=...)")
    client = _number(run, client)
    model = _model(run, run.problem, client, seed)
    stream, settings = run.spec["stream"], run.spec["simulate"]
    if run.labels is not None and len(run.labels) != run.problem.classes:
        raise BadData(
            f"export: the data has {len(run.labels)} labels and the problem {run.problem.classes} classes: which "
            "label would the others be? Take a problem with as many classes"
        )
    about = {
        "problem": run.spec["problem"],
        "labels": None if run.labels is None else list(run.labels),
        "features": _names(stream.get("features") if features is None else features),
        "preprocessing": parts_in(stream),
        "algorithm": run.spec["algorithm"][0],
        "stream": _without_rows(stream),
        "steps": run.summary.steps,
        "seed": run.summary.seeds[0] if seed is None else seed,
        "client": client,
        "dtype": settings.get("dtype"),
    }
    if path.suffix == ".onnx":
        from mainstem.run.onnx_file import save_onnx  # imports what no other run needs

        return save_onnx(path, run.problem, model, _shape(run, run.problem), about)
    arrays: dict[str, np.ndarray] = {}
    if about["preprocessing"]:
        names, arrays = history(run.stream, run.summary.steps, client)
        about["clients"] = names or None
    return save_model(path, model, about, beside=arrays)


def _without_rows(stream: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a stream with fingerprints in the place of rows: a model goes where the data may not."""
    found = {k: _without_rows(it) if isinstance(it, Mapping) else it for k, it in stream.items()}
    for name in ROWS.get(str(stream.get("name")), ()):
        if isinstance(found.get(name), list):
            found[name] = fingerprint(np.asarray(found[name]))
    return found


def _number(run: Any, client: int | str | None) -> int | None:
    """The number of a client that is given by its name."""
    if not isinstance(client, str):
        return client
    names = run.summary.names or []
    if client not in names:
        raise BadParameter(
            f"export: client must be one of {names[:10]}, or a number, got {client!r}"
        )
    return int(names.index(client))


def _model(run: Any, problem: Problem, client: int | None, seed: int | None) -> Any:
    """The model of one seed, in the form of the problem."""
    seeds, clients = run.summary.seeds, run.summary.clients
    if (seed is None and len(seeds) > 1) or (seed is not None and seed not in seeds):
        known = ", ".join(map(str, seeds))
        raise BadParameter(f"export: seed must be one of {known}, got {seed}")
    if client is None and problem.personal:
        raise BadParameter("export: clients have parts of their own: name one, export(client=0)")
    if client is None and not np.any(run.trace["uploads"]):
        why = "no client has uploaded, so that the server's model is the first one"
        raise BadParameter(f"export: {why}: name a client, export(client=0)")
    if client is not None and not 0 <= client < clients:
        raise BadParameter(f"export: client must lie in 0 to {clients - 1}, got {client}")
    found = run.models["server"] if client is None else run.client_models
    if len(seeds) > 1:
        found = found[seeds.index(seed)]
    return Flat(problem).unravel(np.asarray(found if client is None else found[client]))


def _shape(run: Any, problem: Problem) -> tuple[int, ...]:
    """The shape of the features of a sample."""
    rows = None if problem.shape is not None or run.stream is None else run.stream.rows()
    shape = problem.shape if rows is None else np.shape(rows.shown)[1:]
    if shape is None or not all(isinstance(each, int) for each in shape):
        raise BadData("export: for a graph, features must be one array of a known shape")
    return tuple(shape)


def _names(given: Any) -> list[str] | None:
    """The names of features; None for anything else, such as the features themselves."""
    listed = isinstance(given, list | tuple) and all(isinstance(each, str) for each in given)
    return list(given) if listed else None
