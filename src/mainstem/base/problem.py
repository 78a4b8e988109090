"""What is at stake: a problem, and the same problem in flat vectors."""

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
    """A prediction that is a sum: the shared part's on global features, the own part's on local ones.

    Either side can then learn from the other's prediction alone (Agarwal et al. 2020, Section 2).
    """

    widths: tuple[int, int]  # of the global and the local features
    read: Callable[[Any], tuple[Any, Any, Any]]  # seen -> (global features, local features, label)
    shared: Callable[[Any, Any], Any]  # (the shared part, global features) -> prediction
    own: Callable[[Any, Any], Any]  # (the own part, local features) -> prediction
    penalty: Callable[[Any, Any], Any]  # (the sum of both, label) -> loss

    def told(self, own: Any, seen: Any) -> Any:
        """What a client tells the server: (global features, local prediction, label)."""
        x, local, label = self.read(seen)
        return joined(x, self.own(own, local), label)


class Linear(NamedTuple):
    """Scores that are linear in the model: then it is known how steep and how bent a loss can be."""

    features: Callable[[Any], Any]  # seen -> the vector that the model is multiplied with
    slope: float | None  # the largest gradient of the penalty in the scores; None: no limit
    bend: float  # the largest second derivative of the penalty in the scores


class Problem(Value):
    """What is at stake: how a model decides, what is revealed then, and what it costs.

    Below the five functions are facts that a problem may declare; what it does not declare is not used.
    """

    @property
    @abc.abstractmethod
    def domain(self) -> Domain:
        """Where its models live."""

    @abc.abstractmethod
    def init(self, key: Key) -> Any:
        """The first model: nested arrays, or a `Pair` of them."""

    @abc.abstractmethod
    def decide(self, params: Any, shown: Any, at: At) -> Any:
        """What the model does with what it is shown: scores, a prediction, an action."""

    @abc.abstractmethod
    def reveal(self, decision: Any, sample: Sample) -> Any:
        """What is seen after the decision."""

    @abc.abstractmethod
    def loss(self, params: Any, seen: Any) -> Any:
        """A scalar, differentiable in the model."""

    def metrics(self, decision: Any, sample: Sample) -> Mapping[str, Any]:
        """Named scalars that are recorded beside the loss."""
        return {}

    def check(self, shown: Any, hidden: Any) -> None:
        """Refuses samples (on the host, their axis first) that do not fit."""

    @property
    def convex(self) -> bool:
        """Whether the loss is convex in the model."""
        return False

    @property
    def curvature(self) -> Any:
        """The loss minus curvature |w|^2 / 2 is still convex."""
        return 0.0

    @property
    def shape(self) -> Any:
        """The shape of what is shown, or of its parts, where that is fixed."""
        return None

    @property
    def classes(self) -> int | None:
        """How many labels there are; None: the target is a number, or there is none."""
        return None

    @property
    def block(self) -> int | None:
        """How many samples at a time stay in a CPU's cache; None: any number."""
        return None

    @property
    def form(self) -> Any:
        """seen -> the loss as a quadratic `Form`, where it is one."""
        return None

    @property
    def together(self) -> Any:
        """(params, samples, at) -> (seen, losses, metrics) of many, where that is faster."""
        return None

    @property
    def linear(self) -> Linear | None:
        """Where the scores are linear in the model."""
        return None

    @property
    def residual(self) -> Residual | None:
        """Where the prediction is the sum of a shared and an own part."""
        return None

    @property
    def news(self) -> Any:
        """seen -> is there anything to learn; None: always."""
        return None

    @functools.cached_property
    def shapes(self) -> Any:
        """The model's parts, as shapes."""
        return jax.eval_shape(_init, self, jax.ShapeDtypeStruct((2,), jnp.uint32))

    @property
    def size(self) -> int:
        """The number of parameters, D."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.shapes))

    @property
    def personal(self) -> bool:
        """Whether a part of the model is each client's own."""
        return isinstance(self.shapes, Pair)


@jax.jit  # never run; an equal problem is not traced again
def _init(problem: Problem, key: Key) -> Any:
    return problem.init(key)


class Gradient(NamedTuple):
    """What an algorithm may ask of a problem: `gradient(params, seen)`, and what else is known of it.

    `params` is a vector or a `Pair` of vectors, and the answer is the same.
    """

    at: Callable[[Any, Any], Any]
    form: Callable[[Any], Form] | None = None  # seen -> the loss as a quadratic form
    residual: Residual | None = None  # in flat vectors

    def __call__(self, params: Any, seen: Any) -> Any:
        return self.at(params, seen)


class Faced(NamedTuple):
    """What came of a decision. `news` tells whether there is anything to learn; None: always."""

    seen: Any
    news: Any
    loss: Any
    metrics: Mapping[str, Any]


class Flat:
    """A problem in flat vectors; where one is taken, a `Pair` of them will do."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.form, self.news, self.convex = problem.form, problem.news, problem.convex
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
        """The vector again."""
        return jnp.concatenate(params) if isinstance(params, Pair) else params

    def unravel(self, params: Any) -> Any:
        """The model as the problem writes it."""
        parts = params if isinstance(params, Pair) else self.split(params)
        shared = self._shared(parts.shared)
        return Pair(shared, self._own(parts.own)) if self.problem.personal else shared

    def decide(self, params: Any, shown: Any, at: At) -> Any:
        """The problem's, as are the next two."""
        return self.problem.decide(self.unravel(params), shown, at)

    def reveal(self, decision: Any, sample: Sample) -> Any:
        """What is seen after the decision."""
        return self.problem.reveal(decision, sample)

    def loss(self, params: Any, seen: Any) -> Any:
        """A scalar."""
        return self.problem.loss(self.unravel(params), seen)

    def one(self, params: Any, sample: Sample, at: At) -> Any:
        """What is seen, the loss and the metrics of a single sample."""
        decision = self.decide(params, sample.shown, at)
        seen = jax.lax.stop_gradient(self.problem.reveal(decision, sample))  # it is given
        return seen, self.loss(params, seen), self.problem.metrics(decision, sample)

    def many(self, params: Any, samples: Sample, at: At) -> Any:
        """The same of several samples at one model."""
        if self.problem.together is not None:
            return self.problem.together(self.unravel(params), samples, at)
        return jax.vmap(self.one, in_axes=(None, 0, SEVERAL))(params, samples, at)

    def face(self, params: Any, sample: Sample, at: At) -> Faced:
        """One client decides."""
        told = self.one(params, sample, at)
        return self._heeded(sample.count, self.news and self.news(told[0]), *told)

    def together(self, params: Any, samples: Sample, at: At) -> Faced:
        """Many clients decide with one model."""
        told = self.many(params, samples, at)
        return self._heeded(samples.count, self.news and jax.vmap(self.news)(told[0]), *told)

    def _heeded(self, count: Any, news: Any, seen: Any, loss: Any, metrics: Any) -> Faced:
        """Nothing came: nothing is lost, nothing is learnt, and the metrics are of those present."""
        if count is None:
            return Faced(seen, news, loss, metrics)
        here = jnp.asarray(count) > 0
        metrics = {name: jnp.where(here, value, 0) for name, value in metrics.items()}
        metrics["present"] = here.astype(jnp.result_type(float))
        learns = here if news is None else here & news
        return Faced(seen, learns, jnp.where(here, loss, 0), metrics)

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


def _unraveller(shapes: Any) -> Callable[[Any], Any]:
    """A vector -> these shapes."""
    leaves, tree = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])

    def unravel(params: Any) -> Any:
        parts = [
            params[end - leaf.size : end].reshape(leaf.shape)
            for leaf, end in zip(leaves, ends, strict=True)
        ]
        return jax.tree.unflatten(tree, parts)

    return unravel
