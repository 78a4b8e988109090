"""Model files: a model as safetensors, with all that a prediction needs, for any program."""

import json
import math
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mainstem import experiment, problems
from mainstem.base import Problem
from mainstem.disk import write
from mainstem.errors import BadData, MainstemError, first_line
from mainstem.run.model import Model
from mainstem.run.preparation import PREFIX, Preparation, preparation_of
from mainstem.streams.sample_format import HASHED

FORMAT = 1  # of the entries beside the tensors: docs/formats/model.md
LONGEST = 200  # letters of a fault that are shown


def save_model(
    path: Path,
    model: Any,
    about: Mapping[str, Any],
    mode: int = 0o666,
    beside: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Writes the arrays of a model, by their names in the problem, arrays `beside` it, and JSON about it."""
    known = {"format": FORMAT, "mainstem": metadata.version("mainstem"), **about}
    entries = {name: json.dumps(given) for name, given in known.items() if given is not None}
    path.parent.mkdir(parents=True, exist_ok=True)
    data = _safetensors().numpy.save({**(beside or {}), **tensors(model)}, entries)
    return write(path, data, mode)


def tensors(model: Any) -> dict[str, np.ndarray]:
    """The arrays of a model, by name.

    >>> list(tensors({"layer": {"w": np.zeros(2), "b": np.zeros(1)}})), list(tensors(np.zeros(3)))
    (['layer.b', 'layer.w'], ['model'])
    """
    return {name: np.asarray(leaf, order="C") for name, leaf in _named(model)}


def _named(model: Any) -> list[tuple[str, Any]]:
    """The leaves of a model, with their names."""
    leaves = jax.tree_util.tree_leaves_with_path(model)
    names = (jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves)
    return [(name or "model", leaf) for name, (_, leaf) in zip(names, leaves, strict=True)]


def load_model(path: str | Path, *, problem: Problem | None = None) -> Model:
    """The model in a file of `run.export` or of a hub, ready to predict. No run folder is needed.

    Pass the `problem` if it is your own code.

    >>> import mainstem as ms, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> stream, problem = ms.streams.digits(clients=20), ms.problems.softmax(features=64, classes=10)
    >>> run = ms.simulate(ms.fedogd(0.5), problem, stream, steps=100)
    >>> model = ms.load_model(run.export(folder / "digits.safetensors"))
    >>> rows = stream.rows()
    >>> bool((model.predict(rows.shown) == rows.hidden).mean() > 0.9)
    True
    """
    place = Path(path)
    reader = _safetensors()
    try:
        arrays, about = _read(reader, place)
    except FileNotFoundError:
        raise BadData(f"{place}: there is no such file") from None
    except Exception as error:  # whatever is wrong with it
        raise BadData(f"{place}: is not a model: {first_line(error, most=LONGEST)}") from None
    if problem is None:
        problem = _problem(place, about.get("problem"))
    if problem.classes is None and problem.scored is None:
        raise BadData(f"{place}: {problem} predicts neither a label nor a number")
    try:
        params = _params(problem, arrays)
        _check_labels(problem, about.get("labels"))
        preparation = preparation_of(about, _beside(problem, arrays))
        _check_features(problem, about.get("features"), preparation)
    except Exception as error:
        raise BadData(f"{place}: cannot be used: {first_line(error, most=LONGEST)}") from None
    return Model(problem, params, about, preparation)


def checked(arrays: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises `BadData` unless these are the arrays of a model: with these shapes, of finite numbers."""
    if arrays.keys() != shapes.keys():
        raise BadData(f"it has the arrays {sorted(arrays)}, the model has {sorted(shapes)}")
    for name, array in arrays.items():
        if array.shape != shapes[name]:
            raise BadData(f"{name} has the shape {array.shape}, the model's has {shapes[name]}")
        if not np.issubdtype(array.dtype, np.floating):
            raise BadData(f"{name} has numbers of {array.dtype}, not of a floating-point type")
        if not np.isfinite(array).all():
            raise BadData(f"{name} is not finite")


def _read(reader: Any, place: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the entries of a file."""
    with reader.safe_open(place, "np") as file:
        about = {name: json.loads(given) for name, given in (file.metadata() or {}).items()}
        found = about.get("format")
        if found != FORMAT:
            raise BadData(
                f"it is of format {found!r}, this version of mainstem reads format {FORMAT}"
            )
        return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118


def _problem(place: Path, table: Any) -> Problem:
    """The problem that the file names."""
    try:
        found: Problem = experiment.made(str(place), problems, table)
        _ = found.shapes
    except Exception as error:  # whatever the table contains
        text = first_line(error, most=LONGEST)
        where = "" if text.startswith(str(place)) else f"{place}: "
        raise BadData(
            f"{where}{text}: if the problem is your own code, load_model(path, problem=...)"
        ) from None
    return found


def _params(problem: Problem, arrays: Mapping[str, np.ndarray]) -> Any:
    """The model in the form of the problem. What the problem claims is compared, and not allocated."""
    shapes = {name: tuple(leaf.shape) for name, leaf in _named(problem.shapes)}
    mine = {name: array for name, array in arrays.items() if not is_beside(name, shapes)}
    checked(mine, shapes)
    structure = jax.tree.structure(problem.shapes)
    return jax.tree.unflatten(structure, [mine[name] for name in shapes])


def _beside(problem: Problem, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = dict(_named(problem.shapes))
    return {name: array for name, array in arrays.items() if is_beside(name, names)}


def is_beside(name: str, model: Mapping[str, Any]) -> bool:
    """Whether the array with this name is not of the model, but of its preparation."""
    return name.startswith(PREFIX) and name not in model


def _check_labels(problem: Problem, labels: Any) -> None:
    """Raises an error for labels that are not one for each class."""
    if labels is None:
        return
    if problem.classes is None:
        raise BadData(f"it has labels, but {problem} predicts a number")
    wanted = f"labels must be {problem.classes} different words or numbers"
    if not isinstance(labels, list) or not all(map(_is_label, labels)):
        raise BadData(f"{wanted}, got {labels!r}")
    if len(labels) != problem.classes or len(set(labels)) != len(labels):
        raise BadData(f"{wanted}, got {labels!r}")


def _is_label(given: Any) -> bool:
    return isinstance(given, str | int) or (isinstance(given, float) and math.isfinite(given))


def _check_features(problem: Problem, names: Any, preparation: Preparation | None) -> None:
    """Raises an error for names of features that are not one for each feature, or a preparation of others."""
    if preparation is not None and preparation.shape is not None:
        (features,) = preparation.shape
        _check_width(problem, preparation, features, f"{PREFIX}* has")
    if names is None or names == HASHED:
        return
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadData(f"features must be names, got {names!r}")
    if len(set(names)) != len(names):
        raise BadData(f"features must be different names, got {names!r}")
    _check_width(problem, preparation, len(names), "it names")


def _check_width(
    problem: Problem, preparation: Preparation | None, features: int, has: str
) -> None:
    shape, count = problem.shape, features
    if preparation is not None:
        count = preparation.width(features)
    if isinstance(shape, tuple) and len(shape) == 1 and shape != (count,):
        raise BadData(f"{has} {features} features, and {problem} the shape {shape}")


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise MainstemError(
            "models are files of safetensors: pip install 'mainstem[lab]'"
        ) from None
    return safetensors
