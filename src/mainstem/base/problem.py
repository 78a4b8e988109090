"""Problems: the base class, and a problem in flat vectors."""

import abc
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base.domain import Domain
from mainstem.base.types import SEVERAL, At, Form, Pair, Params, Sample, joined
from mainstem.random import Key
from mainstem.value import Value


class Residual(NamedTuple):
    """A prediction that is the sum of the shared part's on global features and the own part's on local ones.

    Server and client can then learn from each other's predictions alone (Agarwal et al. 2020, Section 2).
    """

    widths: tuple[int, int]  # of the global and the local features
    read: Callable[[Any], tuple[Any, Any, Any]]  # seen -> (global features, local features, label)
    shared: Callable[[Any, Any], Any]  # (the shared part, global features) -> prediction
    own: Callable[[Any, Any], Any]  # (the own part, local features) -> prediction
    penalty: Callable[[Any, Any], Any]  # (the sum of both, label) -> loss

    def summary(self, own: Any, seen: Any) -> Any:
        """What a client sends to the server: (global features, local prediction, label)."""
        x, local, label = self.read(seen)
        return joined(x, self.own(own, local), label)


class Linear(NamedTuple):
    """Scores that are linear in the model, with bounds on the derivatives of the loss in the scores."""

    features: Callable[[Any], Any]  # seen -> the vector by which the model is multiplied
    slope: float | None  # the largest gradient of the penalty in the scores; None: no limit
    bend: float  # the largest second derivative of the penalty in the scores
    columns: Callable[[Any], Any]  # model -> its entries by [feature, score], each once
    penalty: Callable[[Any, Any], Any]  # (scores, seen) -> the loss without the ridge


class Problem(Value):
    """A problem: how a model decides, what is revealed afterwards, and the loss.

    Below the five functions are facts that a problem may declare. A fact that is not declared is not used.
    """

    @property
    @abc.abstractmethod
    def domain(self) -> Domain:
        """The set of its models."""

    @abc.abstractmethod
    def init(self, key: Key) -> Any:
        """The first model: nested arrays, or a `Pair` of them."""

    @abc.abstractmethod
    def decide(self, params: Any, shown: Any, at: At) -> Any:
        """The decision of the model on what is shown: scores, a prediction, an action."""

    @abc.abstractmethod
    def reveal(self, decision: Any, sample: Sample) -> Any:
        """What is revealed to the client after the decision (`seen`)."""

    @abc.abstractmethod
    def loss(self, params: Any, seen: Any) -> Any:
        """A scalar, differentiable in the model."""

    def metrics(self, decision: Any, sample: Sample) -> Mapping[str, Any]:
        """Named scalars that are recorded with the loss."""
        return {}

    def check(self, shown: Any, hidden: Any) -> None:
        """Raises an error if samples do not fit; their arrays are on the host, with the samples as first axis."""

    @property
    def convex(self) -> bool:
        """Whether the loss is convex in the model."""
        return False

    @property
    def curvature(self) -> Any:
        """The loss minus curvature |w|^2 / 2 is still convex."""
        return 0.0

    @property
    def smooth(self) -> float | None:
        """A bound on the second derivative of the loss of a single sample; None: not declared."""
        return None

    @property
    def rounding(self) -> float | None:
        """The relative error of losses and gradients in float64 that certificates assume, and say so; None: they
        bound it as for logistic and softmax losses."""
        return 1e-12

    @property
    def shape(self) -> Any:
        """The shape of what is shown, or of its parts, if it is fixed; else None."""
        return None

    @property
    def classes(self) -> int | None:
        """The number of labels; None: the target is a number, or there is none."""
        return None

    @property
    def block(self) -> int | None:
        """The number of samples to compute at a time, so that they fit in a CPU's cache; None: any number."""
        return None

    @property
    def form(self) -> Any:
        """seen -> the loss as a quadratic `Form`, if it is one; else None."""
        return None

    @property
    def vectorized(self) -> Any:
        """(params, samples, at) -> (seen, losses, metrics) of many samples, if that is faster; else None."""
        return None

    @property
    def linear(self) -> Linear | None:
        """The linear scores, if they are linear in the model; else None."""
        return None

    @property
    def residual(self) -> Residual | None:
        """The two parts of the prediction, if it is the sum of a shared and an own part; else None."""
        return None

    @property
    def informative(self) -> Any:
        """seen -> whether there is anything to learn from it; None: always."""
        return None

    @property
    def scored(self) -> Any:
        """(params, seen) -> (score, label) for labels 0 and 1, a positive score for label 1; (prediction, target)
        for a target that is a number; else None."""
        return None

    @functools.cached_property
    def shapes(self) -> Any:
        """The shapes of the model's arrays."""
        return jax.eval_shape(_init, self, jax.ShapeDtypeStruct((2,), jnp.uint32))

    @property
    def parameters(self) -> int:
        """The number of parameters, D."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.shapes))

    @property
    def personal(self) -> bool:
        """Whether a part of the model is each client's own."""
        return isinstance(self.shapes, Pair)


@jax.jit  # only traced, once for equal problems
def _init(problem: Problem, key: Key) -> Any:
    return problem.init(key)


class Gradient(NamedTuple):
    """The gradient of a problem, `gradient(params, seen)`, and the facts that an algorithm may use.

    `params` is a vector or a `Pair` of vectors, and so is the result.
    """

    at: Callable[[Any, Any], Any]
    form: Callable[[Any], Form] | None = None  # seen -> the loss as a quadratic form
    residual: Residual | None = None  # in flat vectors

    def __call__(self, params: Any, seen: Any) -> Any:
        return self.at(params, seen)


class Faced(NamedTuple):
    """The outcome of a decision. `informative`: whether there is anything to learn from it; None: always."""

    seen: Any
    informative: Any
    loss: Any
    metrics: Mapping[str, Any]


class Nested(NamedTuple):
    """A model in the nested form of the problem, where `Flat` else takes a vector."""

    model: Any


class Flat:
    """A problem in flat vectors. A model may be one vector or a `Pair` of vectors."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.form, self.informative, self.convex = problem.form, problem.informative, problem.convex
        pair = problem.shapes if problem.personal else Pair(problem.shapes, ())
        self._shared, self._own = _unraveller(pair.shared), _unraveller(pair.own)
        self._cut = sum(leaf.size for leaf in jax.tree.leaves(pair.shared))
        self.gradient = Gradient(self._gradient, problem.form, self._residual())

    def init(self, key: Key) -> Params:
        """The first model."""
        return _ravel(self.problem.init(key))

    def split(self, params: Params) -> Pair:
        """A vector as its shared and its own part."""
        return Pair(params[: self._cut], params[self._cut :])

    def join(self, params: Any) -> Params:
        """The vector of a `Pair`; a vector is returned unchanged."""
        return jnp.concatenate(params) if isinstance(params, Pair) else params

    def unravel(self, params: Any) -> Any:
        """The model in the nested form of the problem."""
        if isinstance(params, Nested):
            return params.model
        parts = params if isinstance(params, Pair) else self.split(params)
        shared = self._shared(parts.shared)
        return Pair(shared, self._own(parts.own)) if self.problem.personal else shared

    def slope(self, function: Callable[[Any], Any], params: Params) -> tuple[Params, Any]:
        """The gradient at `params` of a function of the model, and what it returns besides its value.

        The function is given the model in nested form: to join the gradients of its parts costs less than to add
        those of slices of a vector.
        """
        slope, found = jax.grad(function, has_aux=True)(Nested(self.unravel(params)))
        return _ravel_in_place(slope) if jax.default_backend() == "cpu" else _ravel(slope), found

    def unravel_shared(self, shared: Any) -> Any:
        """The shared part in the nested form of the problem; all of it, if a model has no other part."""
        return self._shared(shared)

    def decide(self, params: Any, shown: Any, at: At) -> Any:
        """The decision of the problem."""
        return self.problem.decide(self.unravel(params), shown, at)

    def reveal(self, decision: Any, sample: Sample) -> Any:
        """What is revealed after the decision."""
        return self.problem.reveal(decision, sample)

    def loss(self, params: Any, seen: Any) -> Any:
        """The loss of the problem, a scalar."""
        return self.problem.loss(self.unravel(params), seen)

    def scored(self, params: Any, seen: Any) -> tuple[Any, Any]:
        """The score and the label, or the prediction and the target."""
        score, label = self.problem.scored(self.unravel(params), seen)
        return score, label

    def one(self, params: Any, sample: Sample, at: At) -> Any:
        """What is revealed, the loss and the metrics of one sample."""
        decision = self.decide(params, sample.shown, at)
        seen = jax.lax.stop_gradient(self.problem.reveal(decision, sample))  # it is data
        return seen, self.loss(params, seen), self.problem.metrics(decision, sample)

    def many(self, params: Any, samples: Sample, at: At) -> Any:
        """The same for several samples and one model."""
        if self.problem.vectorized is not None:
            return self.problem.vectorized(self.unravel(params), samples, at)
        return jax.vmap(self.one, in_axes=(None, 0, SEVERAL))(params, samples, at)

    def face(self, params: Any, sample: Sample, at: At) -> Faced:
        """The outcome of one client's decision."""
        seen, loss, metrics = self.one(params, sample, at)
        informative = self.informative and self.informative(seen)
        return self._masked(sample.count, Faced(seen, informative, loss, metrics))

    def face_many(self, params: Any, samples: Sample, at: At) -> Faced:
        """The outcomes of many clients that decide with one model."""
        seen, losses, metrics = self.many(params, samples, at)
        informative = self.informative and jax.vmap(self.informative)(seen)
        return self._masked(samples.count, Faced(seen, informative, losses, metrics))

    def _masked(self, count: Any, faced: Faced) -> Faced:
        """Masks clients without a sample: no loss, nothing to learn, not counted in the metrics."""
        if count is None:
            return faced
        here = jnp.asarray(count) > 0
        metrics = {name: jnp.where(here, value, 0) for name, value in faced.metrics.items()}
        metrics["present"] = here.astype(jnp.result_type(float))
        learns = here if faced.informative is None else here & faced.informative
        return Faced(faced.seen, learns, jnp.where(here, faced.loss, 0), metrics)

    def _gradient(self, params: Any, seen: Any) -> Any:
        if isinstance(params, Pair):
            return jax.grad(self.loss)(params, seen)
        return _ravel(jax.grad(self.problem.loss)(self.unravel(params), seen))

    def _residual(self) -> Residual | None:
        nested = self.problem.residual
        if nested is None:
            return None
        return nested._replace(
            shared=lambda params, x: nested.shared(self._shared(params), x),
            own=lambda params, x: nested.own(self._own(params), x),
        )


def _ravel(nested: Any) -> Params:
    dtype = jnp.result_type(float)
    return jnp.concatenate([jnp.ravel(leaf).astype(dtype) for leaf in jax.tree.leaves(nested)])


def _ravel_in_place(nested: Any) -> Params:
    """The same, part after part: on CPUs a concatenation makes what is fused with it slower."""
    leaves = jax.tree.leaves(nested)
    found = jnp.zeros(sum(leaf.size for leaf in leaves), jnp.result_type(float))
    begin = 0
    for leaf in leaves:
        found = jax.lax.dynamic_update_slice(found, jnp.ravel(leaf).astype(found.dtype), (begin,))
        begin += leaf.size
    return found


def _unraveller(shapes: Any) -> Callable[[Any], Any]:
    """Returns a function from a vector to arrays of these shapes."""
    leaves, tree = jax.tree.flatten(shapes)
    sizes = [leaf.size for leaf in leaves]
    ends = np.cumsum(sizes, dtype=int)

    def unravel(params: Any) -> Any:
        parts = [params[n - size : n] for n, size in zip(ends, sizes, strict=True)]
        parts = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
        return jax.tree.unflatten(tree, parts)

    return unravel
