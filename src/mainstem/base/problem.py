"""What is at stake: a problem, and the same problem in flat vectors."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base.values import SEVERAL, At, Form, Pair, Params, Sample, joined
from mainstem.random import Key
from mainstem.spec import UNRECORDED, Spec


class Domain(NamedTuple):
    """A closed convex set of models."""

    name: str
    project: Callable[[Any], Any]  # the nearest point (for a p-norm ball, in its map's divergence)
    support: Callable[[Any], Any] | None  # g -> max over the set of <g, u>; None: unbounded
    bounds: tuple[float, float] | None = None  # of a box
    spec: Spec = UNRECORDED


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


Together = Callable[[Any, Sample, At], tuple[Any, Any, Mapping[str, Any]]]
"""(params, samples, at) -> what is seen, the losses and the metrics of many samples at one model."""


class Problem(NamedTuple):
    """What is at stake: how a model decides, what is revealed then, and what it costs."""

    init: Callable[[Key], Any]
    decide: Callable[[Any, Any, At], Any]  # (params, shown, at) -> decision
    reveal: Callable[[Any, Sample], Any]  # (decision, sample) -> seen
    loss: Callable[[Any, Any], Any]  # (params, seen) -> scalar, differentiable
    metrics: Callable[[Any, Sample], Mapping[str, Any]]  # (decision, sample) -> named scalars
    domain: Domain
    check: Callable[[Any, Any], None]  # refuses host samples (shown, hidden) that do not fit
    convex: bool = False
    curvature: float = 0.0  # the loss minus curvature |w|^2 / 2 is still convex
    form: Callable[[Any], Form] | None = None  # seen -> the loss as a quadratic form
    together: Together | None = None  # the same for many samples, where that is faster
    block: int | None = None  # how many samples at a time stay in a CPU's cache; None: any number
    linear: Linear | None = None  # where the scores are linear in the model
    residual: Residual | None = None  # where the prediction is the sum of a shared and an own part
    news: Callable[[Any], Any] | None = None  # seen -> is there anything to learn; None: always
    features: Any = None  # the shape of what is shown, or of its parts, where that is fixed
    classes: int | None = None  # of labels; None: the target is a number, or there is none
    spec: Spec = UNRECORDED

    @property
    def shapes(self) -> Any:
        """The model's parts, as shapes."""
        return jax.eval_shape(self.init, jax.ShapeDtypeStruct((2,), jnp.uint32))

    @property
    def size(self) -> int:
        """The number of parameters, D."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.shapes))

    @property
    def personal(self) -> bool:
        """Whether a part of the model is each client's own."""
        return isinstance(self.shapes, Pair)


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


class Flat(NamedTuple):
    """A problem in flat vectors; where one is taken, a `Pair` of them will do."""

    init: Callable[[Key], Params]
    split: Callable[[Params], Pair]  # a vector as its shared and its own part
    join: Callable[[Any], Params]  # the vector again
    unravel: Callable[[Any], Any]
    decide: Callable[[Any, Any, At], Any]
    reveal: Callable[[Any, Sample], Any]
    loss: Callable[[Any, Any], Any]
    gradient: Gradient
    one: Together  # a single sample
    many: Together  # several, at one model
    news: Callable[[Any], Any] | None
    form: Callable[[Any], Form] | None
    convex: bool

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


def flat(problem: Problem) -> Flat:
    """`problem` with its parameters as one vector, in the dtype in force."""
    shapes = problem.shapes
    pair = shapes if isinstance(shapes, Pair) else Pair(shapes, ())
    unravel_shared, unravel_own = _unraveller(pair.shared), _unraveller(pair.own)
    shared_size = sum(leaf.size for leaf in jax.tree.leaves(pair.shared))

    def split(params: Params) -> Pair:
        return Pair(params[:shared_size], params[shared_size:])

    def join(params: Any) -> Params:
        return jnp.concatenate(params) if isinstance(params, Pair) else params

    def unravel(params: Any) -> Any:
        parts = params if isinstance(params, Pair) else split(params)
        shared = unravel_shared(parts.shared)
        return Pair(shared, unravel_own(parts.own)) if isinstance(shapes, Pair) else shared

    def many(params: Any, samples: Sample, at: At) -> Any:
        if problem.together is not None:
            return problem.together(unravel(params), samples, at)
        return jax.vmap(one, in_axes=(None, 0, SEVERAL))(params, samples, at)

    def one(params: Any, sample: Sample, at: At) -> Any:
        decision = vectors.decide(params, sample.shown, at)
        seen = jax.lax.stop_gradient(problem.reveal(decision, sample))  # it is given
        return seen, vectors.loss(params, seen), problem.metrics(decision, sample)

    def gradient(params: Any, seen: Any) -> Any:
        if isinstance(params, Pair):
            return jax.grad(vectors.loss)(params, seen)
        return _ravel(jax.grad(problem.loss)(unravel(params), seen))

    def residual() -> Residual | None:
        if problem.residual is None:
            return None
        nested = problem.residual
        return nested._replace(
            shared=lambda params, x: nested.shared(unravel_shared(params), x),
            own=lambda params, x: nested.own(unravel_own(params), x),
        )

    vectors = Flat(
        init=lambda key: _ravel(problem.init(key)),
        split=split,
        join=join,
        unravel=unravel,
        decide=lambda params, shown, at: problem.decide(unravel(params), shown, at),
        reveal=problem.reveal,
        loss=lambda params, seen: problem.loss(unravel(params), seen),
        gradient=Gradient(gradient, problem.form, residual()),
        one=one,
        many=many,
        news=problem.news,
        form=problem.form,
        convex=problem.convex,
    )
    return vectors


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
