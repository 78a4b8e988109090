"""Models that predict: what `load_model` returns."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import At, Problem
from mainstem.errors import BadData
from mainstem.run.preparation import Preparation
from mainstem.streams.columns import date_part, part_of
from mainstem.streams.sample_format import SampleFormat

ROWS = 4096  # that are predicted at a time


class Model:
    """A model that predicts. It does not learn.

    If the run filled or scaled features, rows are prepared in the same way, each as the next row of a client: of
    `client`, one of `clients`. With `prepared=True` they are taken as they are.
    """

    def __init__(
        self,
        problem: Problem,
        params: Any,
        about: Mapping[str, Any],
        preparation: Preparation | None = None,
    ):
        self.problem = problem
        self.params = params
        self.about = dict(about)  # what the file says of its origin
        self._preparation = preparation
        self._dtype = np.result_type(np.float32, *jax.tree.leaves(params))
        features, labels = about.get("features"), about.get("labels")
        named = tuple(features) if isinstance(features, list) else features
        self.format = SampleFormat(problem, self._dtype, named, labels)
        if preparation is not None:
            self._raw = SampleFormat(
                problem,
                np.dtype(np.float64),
                named,
                labels,
                shape=preparation.shape,
                gaps=preparation.missing is not None,
            )

    def __repr__(self) -> str:
        return f"<Model of {self.problem}>"

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The label of each class, in the order of `predict_proba`; None: the target is a number."""
        if self.problem.classes is None:
            return None
        return tuple(self.about.get("labels") or range(self.problem.classes))

    @property
    def clients(self) -> tuple[Any, ...]:
        """What `client` may be: those whose running means and the like the file has."""
        return () if self._preparation is None else self._preparation.clients

    def predict_one(self, x: Any, *, client: Any = None, prepared: bool = False) -> Any:
        """The prediction for one sample, a dict or an array: a number, or a label."""
        return self.format.label(self._decisions([x], client, prepared)[0])

    def predict_proba_one(
        self, x: Any, *, client: Any = None, prepared: bool = False
    ) -> dict[Any, float]:
        """The probability of each label for one sample."""
        return self.format.probabilities(self._decisions([x], client, prepared)[0])

    def predict(self, xs: Any, *, client: Any = None, prepared: bool = False) -> np.ndarray:
        """The predictions for rows: an array, a data frame with the names of the features, or a list of dicts."""
        found = self._decisions(xs, client, prepared)
        return np.array([self.format.label(each) for each in found])

    def predict_proba(self, xs: Any, *, client: Any = None, prepared: bool = False) -> np.ndarray:
        """The probabilities of the labels for rows: [rows, labels]."""
        found = self._decisions(xs, client, prepared)
        return np.array([list(self.format.probabilities(each).values()) for each in found])

    def _decisions(self, xs: Any, client: Any, prepared: bool) -> np.ndarray:
        if self._preparation is None or prepared:
            if client is not None:
                raise BadData("predict: client must be left out: the rows are taken as they are")
            rows = _rows(xs, self.format)
        else:
            known = self._preparation.of(client)
            rows = _rows(self._preparation.applied(_rows(xs, self._raw), known), self.format)
        with jax.enable_x64(self._dtype == np.float64):
            return decisions(self.problem, self.params, rows)


def _rows(xs: Any, form: SampleFormat) -> Any:
    if hasattr(xs, "to_dict") and hasattr(xs, "columns"):  # a data frame
        xs = _features(xs, form.named) if form.named else xs.to_numpy()
    rows: Sequence[Any] = [form.shown(x) for x in xs]
    if not rows:
        raise BadData("predict: wants at least one row")
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


def _features(frame: Any, names: Sequence[str]) -> np.ndarray:
    """The features in a data frame; `time.hour` is the hour of its column `time`, as in streams."""
    return np.stack([_feature(frame, name) for name in names], axis=1)


def _feature(frame: Any, name: str) -> np.ndarray:
    column, part = date_part(name)
    if name in frame.columns:
        return np.asarray(frame[name])
    if column in frame.columns:
        return np.asarray(part_of(_dates(column, np.asarray(frame[column])), part))
    present = check.listed(name, list(map(str, frame.columns)))
    raise BadData(f"predict: there is no column {name!r}, only {present}")


def _dates(column: str, given: np.ndarray) -> Any:
    """A column of dates, or of text that pandas reads as dates, for pyarrow."""
    import pandas as pd
    import pyarrow as pa

    try:
        if given.dtype.kind in "biuf":
            raise ValueError("numbers")
        return pa.array(pd.to_datetime(pd.Series(given)))
    except (ValueError, TypeError) as error:
        raise BadData(f"predict: column {column!r} has no dates: {error}") from None


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
