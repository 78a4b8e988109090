"""Converts users' samples to arrays, and decisions to numbers, labels and probabilities."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from mainstem.base import Problem, Sample
from mainstem.errors import BadData
from mainstem.streams.sparse import dense

HASHED = "hashed"  # in place of the names of features: any names


class SampleFormat:
    """Converts between users' values and the arrays of a problem. Refuses what does not fit."""

    def __init__(
        self,
        problem: Problem,
        dtype: np.dtype[Any],
        features: tuple[str, ...] | str | None,
        labels: Sequence[Any] | None,
        *,
        shape: Any = None,
        gaps: bool = False,
    ):
        """`shape` is that of features that are still to be prepared; with `gaps` they may be NaN."""
        self._problem, self._dtype = problem, dtype
        self._shape, self._gaps = problem.shape if shape is None else shape, gaps
        self.hashes = features == HASHED  # words and any keys are features
        self._features = features
        self._labels = None if labels is None else tuple(labels)

    @property
    def named(self) -> tuple[str, ...] | None:
        """The names of the features, if the run names them."""
        return self._features if isinstance(self._features, tuple) else None

    # --- in ----------------------------------------------------------------------------------------

    def shown(self, x: Any) -> Any:
        """Features as the problem takes them."""
        wanted = self._shape
        if not isinstance(x, Mapping | np.ndarray | Sequence) and hasattr(x, "to_dict"):
            x = _by_name(x)
        if isinstance(x, Mapping):
            x = dense(x, wanted[0]) if self.hashes else self._vector(x)
        if isinstance(wanted, tuple) and wanted and isinstance(wanted[0], tuple):
            if len(x) != len(wanted):
                raise BadData(f"x must have {len(wanted)} parts of features, got {len(x)}")
            return tuple(self._array(part, shape) for part, shape in zip(x, wanted, strict=True))
        return self._array(x, wanted)

    def _vector(self, x: Mapping[str, Any]) -> list[float]:
        if self._features is None:
            self._features = tuple(sorted(x))
        assert not isinstance(self._features, str)
        found = [x[name] for name in self._features if name in x]
        if len(x) != len(found) or len(found) != len(self._features):
            missing = ", ".join(map(str, sorted(set(self._features) - set(x)))) or "none"
            unknown = ", ".join(map(str, sorted(set(x) - set(self._features)))) or "none"
            raise BadData(
                f"x must have the features {', '.join(self._features)}; missing: {missing}; unknown: {unknown}"
            )
        return found

    def _array(self, x: Any, shape: Any) -> np.ndarray:
        try:
            array = np.asarray(x, self._dtype)
        except (TypeError, ValueError):
            raise BadData(f"x must be numbers, got {x!r}") from None
        if shape is not None and array.shape != tuple(shape):
            raise BadData(f"x must have the shape {shape}, got {array.shape}")
        finite = ~np.isinf(array) if self._gaps else np.isfinite(array)
        if np.count_nonzero(finite) < array.size:  # twice as quick as `all`
            raise BadData("x must be finite")
        return array

    def hidden(self, y: Any) -> Any:
        """A target or label as the problem takes it."""
        classes = self._problem.classes
        if classes is None:
            try:
                number = self._dtype.type(y)
            except (TypeError, ValueError):
                raise BadData(f"y must be a number, got {y!r}") from None
            if not np.isfinite(number):
                raise BadData(f"y must be finite, got {y!r}")
            return number
        if self._labels is not None:
            if y not in self._labels:
                known = ", ".join(map(repr, self._labels))
                raise BadData(f"y must be one of {known}, got {y!r}")
            return np.int32(self._labels.index(y))
        label = int(y) if isinstance(y, bool | np.bool_ | int | np.integer) else -1
        if not 0 <= label < classes:
            raise BadData(f"y must be a label from 0 to {classes - 1}, got {y!r}")
        return np.int32(label)

    def sample(self, x: Any, y: Any) -> Sample:
        """One sample."""
        return Sample(self.shown(x), self.hidden(y))

    def samples(self, xs: Any, ys: Any) -> tuple[Sample, int]:
        """Many samples, stacked, and their number."""
        if isinstance(xs, np.ndarray) and not isinstance(self._problem.shape[0], tuple):
            each = self._many(xs, ys)
        else:
            rows = [self.sample(x, y) for x, y in zip(xs, ys, strict=True)]
            each = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
        return each, len(each.hidden)

    def _many(self, xs: np.ndarray, ys: Any) -> Sample:
        shape = tuple(self._problem.shape)
        shown = np.asarray(xs, self._dtype)
        if shown.shape[1:] != shape or len(shown) != len(ys):
            raise BadData(
                f"rows must have the shape {shape}, one y for each; got {shown.shape}, {len(ys)}"
            )
        if not np.isfinite(shown).all():
            raise BadData("x must be finite")
        if self._problem.classes is None:
            hidden = np.asarray(ys, self._dtype)
            if not np.isfinite(hidden).all():
                raise BadData("y must be finite")
            return Sample(shown, hidden)
        if self._labels is not None:
            return Sample(shown, np.array([self.hidden(y) for y in ys]))
        labels = np.asarray(ys)
        if (
            labels.dtype.kind not in "biu"
            or labels.min() < 0
            or labels.max() >= self._problem.classes
        ):
            raise BadData(f"y must be labels from 0 to {self._problem.classes - 1}")
        return Sample(shown, labels.astype(np.int32))

    # --- out ---------------------------------------------------------------------------------------

    def label(self, decision: np.ndarray) -> Any:
        """The prediction in a decision: a number, or a label."""
        if self._problem.classes is None:
            return float(np.squeeze(decision))
        place = int(float(decision) > 0) if decision.ndim == 0 else int(np.argmax(decision))
        return place if self._labels is None else self._labels[place]

    def probabilities(self, decision: np.ndarray) -> dict[Any, float]:
        """The probability of each label in a decision."""
        if self._problem.classes is None:
            raise BadData("probabilities are of labels: this problem predicts a number")
        (shares,) = chances(decision[None])
        names: Sequence[Any] = self._labels or range(shares.size)
        return {name: float(share) for name, share in zip(names, shares, strict=True)}


def chances(decisions: np.ndarray) -> np.ndarray:
    """The probability of each label [rows, labels], from decisions with a score for each label, or for the second.

    >>> chances(np.zeros(2)).tolist(), chances(np.log([[1.0, 3.0]])).round(2).tolist()
    ([[0.5, 0.5], [0.5, 0.5]], [[0.25, 0.75]])
    """
    scores = np.asarray(decisions, float)
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _by_name(series: Any) -> Any:
    """A Series of pandas as a dict, if its index has names; else as an array."""
    named = dict(series.to_dict())
    return named if all(isinstance(name, str) for name in named) else np.asarray(series)
