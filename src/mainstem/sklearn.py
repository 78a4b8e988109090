"""Estimators of scikit-learn: an algorithm and a problem with `fit`, `partial_fit` and `predict`.

Rows are dealt to the clients in turn, and a step needs a row of each: rows wait until there are enough. The model
that predicts is the server's, which changes at syncs.

>>> import mainstem as ms
>>> from sklearn.datasets import load_digits
>>> from sklearn.model_selection import cross_val_score
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import MinMaxScaler
>>> learner = ms.sklearn.OnlineClassifier(ms.fedogd(step=0.5), clients=10)
>>> scores = cross_val_score(make_pipeline(MinMaxScaler(), learner), *load_digits(return_X_y=True), cv=3)
>>> bool(scores.mean() > 0.8)
True
"""

import abc
from collections.abc import Callable
from typing import Any, Self

import jax
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mainstem import problems
from mainstem.algorithms.ofediq import fedogd
from mainstem.base import Algorithm, Problem
from mainstem.engines.ongoing import Ongoing
from mainstem.errors import BadData, BadParameter, NotFinite
from mainstem.parts import optimizer
from mainstem.run.model import decisions
from mainstem.streams.sample_format import chances

__all__ = ["OnlineClassifier", "OnlineRegressor"]

# AdaGrad needs no step that fits the features: theirs may be of any unit.
BY_DEFAULT = fedogd(1.0, server=optimizer("adagrad", learning_rate=0.3))


class _Online(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """What both estimators share."""

    def __init__(
        self,
        algorithm: Algorithm | None = None,
        problem: Problem | Callable[..., Problem] | None = None,
        *,
        clients: int = 1,
        epochs: int = 1,
        seed: int = 0,
        dtype: str = "float32",
    ):
        self.algorithm = algorithm
        self.problem = problem
        self.clients = clients
        self.epochs = epochs
        self.seed = seed
        self.dtype = dtype

    def _reset(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _learn(self, shown: np.ndarray, hidden: np.ndarray) -> None:
        """Learns from rows, and from those that have waited. A first call that fails leaves nothing behind."""
        first = not hasattr(self, "learner_")
        try:
            if first:
                self._begin(shown, hidden)
            self._advance(shown, hidden)
        except Exception:
            if first:
                self._reset()
            raise

    def _begin(self, shown: np.ndarray, hidden: np.ndarray) -> None:
        self.problem_ = self._problem()
        algorithm = BY_DEFAULT if self.algorithm is None else self.algorithm
        self.learner_ = Ongoing(
            algorithm, self.problem_, clients=self.clients, seed=self.seed, dtype=self.dtype
        )
        self.waiting_ = shown[:0], hidden[:0]

    def _advance(self, shown: np.ndarray, hidden: np.ndarray) -> None:
        shown, hidden = (
            np.concatenate(each) for each in zip(self.waiting_, (shown, hidden), strict=True)
        )
        steps = len(hidden) // self.clients
        used = steps * self.clients
        self.waiting_ = shown[used:], hidden[used:]
        if steps:
            rows = shown[:used].reshape(steps, self.clients, -1)
            self.learner_.advance(rows, hidden[:used].reshape(steps, self.clients))
            if self.learner_.model is None:
                return
            self.model_ = self.learner_.model
            if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(self.model_)):
                raise NotFinite(
                    f"{type(self).__name__}: the model is not finite: try a smaller step"
                )

    @abc.abstractmethod
    def _problem(self) -> Problem:
        """The problem that it was given, or makes for these features."""

    def _checked(self, problem: Problem, classes: int | None) -> Problem:
        """The problem, if it decides between so many classes; None: if it predicts a number."""
        if problem.classes != classes:
            wanted = "a number as target" if classes is None else f"{classes} classes"
            got = "a number as target" if problem.classes is None else f"{problem.classes} classes"
            name = type(self).__name__
            raise BadParameter(f"{name}: problem must have {wanted}, {problem} has {got}")
        return problem

    def _decisions(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "problem_")
        rows = validate_data(self, X, reset=False, dtype=self.dtype)
        if not hasattr(self, "model_"):
            wants = f"a row of each of {self.clients} clients, up to the first sync"
            raise BadData(f"{type(self).__name__}: has learnt nothing yet: it wants {wants}")
        with jax.enable_x64(self.dtype == "float64"):
            return decisions(self.problem_, self.model_, rows)


class OnlineClassifier(ClassifierMixin, _Online):  # type: ignore[misc]
    """A classifier. `algorithm` is FedOGD by default, `problem` softmax; or a function of features and classes."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learns from the rows in their order, `epochs` times; what was learnt before is forgotten."""
        self._reset()
        for _ in range(self.epochs):
            self.partial_fit(X, y, classes=np.unique(np.asarray(y)))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learns from further rows; the first call names all `classes`, a later one those or none."""
        first = not hasattr(self, "classes_")
        rows, labels = validate_data(self, X, y, reset=first, dtype=self.dtype)
        check_classification_targets(labels)
        named = self._named(classes)
        places = np.searchsorted(named, labels).clip(max=len(named) - 1)
        if (named[places] != labels).any():
            unknown = sorted(set(np.asarray(labels).tolist()) - set(named.tolist()))
            raise ValueError(f"y has classes that the first call did not name: {unknown}")
        self.classes_ = named
        self._learn(rows, places.astype(np.int32))
        return self

    def _named(self, classes: Any) -> np.ndarray:
        """The classes of the first call, which a later one may repeat."""
        known = getattr(self, "classes_", None)
        if classes is None:
            if known is None:
                raise ValueError("classes must be passed on the first call to partial_fit")
            return known
        named = np.unique(classes)
        if known is not None and not np.array_equal(known, named):
            raise ValueError(f"classes={classes!r} is not the same as on the first call: {known}")
        return named

    def _problem(self) -> Problem:
        make, classes = self.problem or problems.softmax, max(2, len(self.classes_))
        if not isinstance(make, Problem):
            make = make(features=self.n_features_in_, classes=classes)
        return self._checked(make, classes)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class for each row."""
        found = chances(self._decisions(X))[:, : len(self.classes_)]
        return found / found.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        places = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[places])


class OnlineRegressor(RegressorMixin, _Online):  # type: ignore[misc]
    """A regressor. `algorithm` is FedOGD by default, `problem` linear; or a function of the features."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learns from the rows in their order, `epochs` times; what was learnt before is forgotten."""
        self._reset()
        for _ in range(self.epochs):
            self.partial_fit(X, y)
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learns from further rows."""
        first = not hasattr(self, "problem_")
        rows, targets = validate_data(self, X, y, reset=first, dtype=self.dtype, y_numeric=True)
        self._learn(rows, np.asarray(targets, self.dtype))
        return self

    def _problem(self) -> Problem:
        make = self.problem or problems.linear
        if not isinstance(make, Problem):
            make = make(features=self.n_features_in_)
        return self._checked(make, None)

    def predict(self, X: Any) -> np.ndarray:
        """The prediction for each row."""
        found = self._decisions(X)
        return found.reshape(len(found)).astype(np.float64)
