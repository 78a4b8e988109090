"""Model files: a model as safetensors, with all that a prediction needs, for any program."""

import functools
import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import experiment, problems
from mainstem.base import At, Problem
from mainstem.disk import write
from mainstem.errors import BadData, MainstemError
from mainstem.streams.sample_format import SampleFormat

FORMAT = 1  # of the entries beside the tensors: docs/formats/model.md
ROWS = 4096  # that are predicted at a time


def save_model(path: Path, model: Any, about: Mapping[str, Any], mode: int = 0o666) -> Path:
    """Writes the arrays of a model, by the names that they have in the problem, and JSON about it."""
    known = {"format": FORMAT, "mainstem": metadata.version("mainstem"), **about}
    entries = {name: json.dumps(given) for name, given in known.items() if given is not None}
    path.parent.mkdir(parents=True, exist_ok=True)
    return write(path, _safetensors().numpy.save(tensors(model), entries), mode)


def tensors(model: Any) -> dict[str, np.ndarray]:
    """The arrays of a model, by name.

    >>> list(tensors({"layer": {"w": np.zeros(2), "b": np.zeros(1)}})), list(tensors(np.zeros(3)))
    (['layer.b', 'layer.w'], ['model'])
    """
    leaves = jax.tree_util.tree_leaves_with_path(model)
    names = (jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves)
    return {
        name or "model": np.asarray(leaf, order="C")
        for name, (_, leaf) in zip(names, leaves, strict=True)
    }


def load_model(path: str | Path, *, problem: Problem | None = None) -> "Model":
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
    try:
        with _safetensors().safe_open(place, "np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            about = {name: json.loads(given) for name, given in (file.metadata() or {}).items()}
        _check_format(about)
    except FileNotFoundError:
        raise BadData(f"{place}: there is no such file") from None
    except Exception as error:  # whatever is wrong with it
        raise BadData(f"{place}: is not a model: {str(error).splitlines()[0]}") from None
    table = about.get("problem")
    if problem is None:
        try:
            problem = experiment.made(str(place), problems, table)
        except MainstemError as error:
            raise BadData(f"{error}: load_model(path, problem=...)") from None
    shapes = {name: tuple(each.shape) for name, each in tensors(_empty(problem.shapes)).items()}
    if {name: each.shape for name, each in arrays.items()} != shapes:
        raise BadData(f"{place}: has other arrays than the model of {problem}, {shapes}")
    leaves = [arrays[name] for name in tensors(_empty(problem.shapes))]
    params = jax.tree.unflatten(jax.tree.structure(problem.shapes), leaves)
    return Model(problem, params, about)


def _check_format(about: Mapping[str, Any]) -> None:
    found = about.get("format")
    if found != FORMAT:
        raise ValueError(
            f"it is of format {found!r}, this version of mainstem reads format {FORMAT}"
        )


class Model:
    """A model that predicts. It does not learn."""

    def __init__(self, problem: Problem, params: Any, about: Mapping[str, Any]):
        if problem.classes is None and problem.scored is None:
            raise BadData(f"load_model: {problem} predicts neither a label nor a number")
        self.problem = problem
        self.params = params
        self.about = dict(about)  # what the file says of its origin
        self._dtype = np.asarray(jax.tree.leaves(params)[0]).dtype
        features = about.get("features")
        named = tuple(features) if isinstance(features, list) else features
        self.format = SampleFormat(problem, self._dtype, named, about.get("labels"))

    def __repr__(self) -> str:
        return f"<Model of {self.problem}>"

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The label of each class, in the order of `predict_proba`; None: the target is a number."""
        if self.problem.classes is None:
            return None
        return tuple(self.about.get("labels") or range(self.problem.classes))

    def predict_one(self, x: Any) -> Any:
        """The prediction for one sample, a dict or an array: a number, or a label."""
        return self.format.label(self._decisions([x])[0])

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each label for one sample."""
        return self.format.probabilities(self._decisions([x])[0])

    def predict(self, xs: Any) -> np.ndarray:
        """The predictions for rows: an array, a data frame with the names of the features, or a list of dicts."""
        return np.array([self.format.label(each) for each in self._decisions(xs)])

    def predict_proba(self, xs: Any) -> np.ndarray:
        """The probabilities of the labels for rows: [rows, labels]."""
        found = [self.format.probabilities(each) for each in self._decisions(xs)]
        return np.array([list(each.values()) for each in found])

    def _decisions(self, xs: Any) -> np.ndarray:
        with jax.enable_x64(self._dtype == np.float64):
            return decisions(self.problem, self.params, self._rows(xs))

    def _rows(self, xs: Any) -> Any:
        if hasattr(xs, "to_dict") and hasattr(xs, "columns"):  # a data frame
            named = self.format.named
            xs = xs[list(named)].to_numpy() if named else xs.to_numpy()
        rows: Sequence[Any] = [self.format.shown(x) for x in xs]
        if not rows:
            raise BadData("predict: wants at least one row")
        return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


def decisions(problem: Problem, params: Any, shown: Any) -> np.ndarray:
    """The decisions of a model for rows."""
    parts = [
        np.asarray(_decide(problem, params, _part(shown, begin)))
        for begin in range(0, len(jax.tree.leaves(shown)[0]), ROWS)
    ]
    return np.concatenate(parts)


def _part(shown: Any, begin: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[begin : begin + ROWS], shown)


@functools.partial(jax.jit, static_argnums=0)
def _decide(problem: Problem, params: Any, shown: Any) -> Any:
    at = At(jnp.asarray(1), jnp.asarray(0), jnp.zeros(2, jnp.uint32))
    return jax.vmap(lambda x: problem.decide(params, x, at))(shown)


def _empty(shapes: Any) -> Any:
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, bool), shapes)


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise MainstemError(
            "models are files of safetensors: pip install 'mainstem[lab]'"
        ) from None
    return safetensors
