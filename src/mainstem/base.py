"""The tuples everything speaks: what arrives, what is at stake, and how it is learnt.

Inside the engines a model is one flat vector (`Params`); `flat` makes a problem with nested
parameters speak it, so that algorithms and parts are arithmetic on vectors.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.random import Key
from mainstem.spec import UNRECORDED, Spec

Params = jax.Array  # a flat vector
Gradient = Callable[[Params, Any], Params]  # (params, seen) -> gradient of the problem's loss


class At(NamedTuple):
    """Where and when: step `t` (1-based), client `k` (0-based) and the key of this occasion."""

    t: Any
    k: Any
    key: Key


class Sample(NamedTuple):
    """What one client gets in one step: what it is shown, and what is hidden until it has decided."""

    shown: Any
    hidden: Any


class Form(NamedTuple):
    """A loss that is quadratic in the model: w'Aw/2 - b'w + c; A a matrix, or a scalar times I.

    Forms add, so a mean over many samples costs no more to evaluate than one sample.
    """

    matrix: Any
    vector: Any
    constant: Any

    def value(self, params: Any) -> Any:
        """The loss at one model."""
        moved = self.matrix * params if np.ndim(self.matrix) == 0 else self.matrix @ params
        return jnp.sum(params * (0.5 * moved - self.vector)) + self.constant  # faster than dots


class Domain(NamedTuple):
    """A closed convex set of models."""

    name: str
    project: Callable[[Any], Any]  # the nearest point (for a p-norm ball, in its map's divergence)
    support: Callable[[Any], Any] | None  # g -> max over the set of <g, u>; None: unbounded
    bounds: tuple[float, float] | None = None  # of a box
    spec: Spec = UNRECORDED


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
    spec: Spec = UNRECORDED

    @property
    def size(self) -> int:
        """The number of parameters, D."""
        shapes = jax.eval_shape(self.init, jax.ShapeDtypeStruct((2,), jnp.uint32))
        return sum(leaf.size for leaf in jax.tree.leaves(shapes))


class Flat(NamedTuple):
    """A problem in flat vectors."""

    init: Callable[[Key], Params]
    unravel: Callable[[Any], Any]
    decide: Callable[[Params, Any, At], Any]
    reveal: Callable[[Any, Sample], Any]
    loss: Callable[[Params, Any], Any]
    gradient: Gradient
    metrics: Callable[[Any, Sample], Mapping[str, Any]]
    together: Together
    form: Callable[[Any], Form] | None
    convex: bool

    def face(self, params: Params, sample: Sample, at: At) -> Any:
        """One client decides: what it has seen, its loss, its metrics."""
        decision = self.decide(params, sample.shown, at)
        seen = jax.lax.stop_gradient(self.reveal(decision, sample))  # what is learnt from is given
        return seen, self.loss(params, seen), self.metrics(decision, sample)


def flat(problem: Problem) -> Flat:
    """`problem` with its parameters as one vector, in the dtype in force."""
    shapes = jax.eval_shape(problem.init, jax.ShapeDtypeStruct((2,), jnp.uint32))
    leaves, tree = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])

    def unravel(params: Any) -> Any:
        parts = [
            params[end - leaf.size : end].reshape(leaf.shape)
            for leaf, end in zip(leaves, ends, strict=True)
        ]
        return jax.tree.unflatten(tree, parts)

    def ravel(nested: Any) -> Params:
        dtype = jnp.result_type(float)
        return jnp.concatenate([jnp.ravel(leaf).astype(dtype) for leaf in jax.tree.leaves(nested)])

    def together(params: Params, samples: Sample, at: At) -> Any:
        if problem.together is not None:
            return problem.together(unravel(params), samples, at)
        return jax.vmap(vectors.face, in_axes=(None, 0, 0))(params, samples, at)

    def gradient(params: Params, seen: Any) -> Params:
        return ravel(jax.grad(problem.loss)(unravel(params), seen))

    vectors = Flat(
        init=lambda key: ravel(problem.init(key)),
        unravel=unravel,
        decide=lambda params, shown, at: problem.decide(unravel(params), shown, at),
        reveal=problem.reveal,
        loss=lambda params, seen: problem.loss(unravel(params), seen),
        gradient=gradient,
        metrics=problem.metrics,
        together=together,
        form=problem.form,
        convex=problem.convex,
    )
    return vectors


def constant(values: Any) -> jax.Array:
    """Numbers fixed at construction, in the dtype in force.

    Cast on the host, because JAX 0.10 keeps one device copy of a NumPy array and hands it out in
    either mode of `enable_x64`.
    """
    return jnp.asarray(np.asarray(values).astype(jnp.result_type(float)))


def cast(tree: Any, dtype: str) -> Any:
    """Host arrays with their floating numbers in `dtype`, whole numbers as they are."""

    def one(x: Any) -> np.ndarray:
        x = np.asarray(x)
        return x.astype(dtype, copy=False) if np.issubdtype(x.dtype, np.floating) else x

    return jax.tree.map(one, tree)


class Stream(NamedTuple):
    """What arrives. `chunk` is what the host sends ahead, `sample` what the device makes of it.

    A dataset stays on the device (`resident`) and its chunks are indices; a generator sends
    nothing; a file sends the rows themselves.
    """

    clients: int
    steps: int | None  # None: endless
    resident: Any
    chunk: Callable[[int, int, int], Any]  # (seed, first, last) -> leaves [steps, clients, ...]
    sample: Callable[[Any, Any, At], Sample]  # (resident, the piece of this step and client, at)
    rows: Callable[[], Sample | None]  # the distinct samples, where a piece is an index into them
    expected: Callable[[Any, Any], Form] | None = None  # (t, k) -> the expected loss, if known
    targets: Callable[[], np.ndarray] | None = None  # all that is hidden, if it can be looked at
    spec: Spec = UNRECORDED


class Step(NamedTuple):
    """A step-size rule: `rate(state, gradient, t)` gives the rate and the next state."""

    init: Callable[[Params], Any]
    rate: Callable[[Any, Params, Any], tuple[Any, Any]]
    schedule: bool  # depends on t alone
    coordinatewise: bool = False  # a rate for each coordinate
    spec: Spec = UNRECORDED


class Mirror(NamedTuple):
    """A mirror map on a domain: its exact step, argmin <g, x> + B(x, params) / rate."""

    step: Callable[[Params, Params, Any], Params]
    start: Callable[[Params], Params]  # the nearest point at which the map is defined
    domain: Domain
    separable: bool  # a rate for each coordinate keeps the step exact
    spec: Spec = UNRECORDED


class Sync(NamedTuple):
    """After which steps the clients and the server talk."""

    after: Callable[[np.ndarray], np.ndarray]  # steps -> whether each is a sync step
    period: int | None  # where the gaps are all equal
    offset: int = 0
    spec: Spec = UNRECORDED


class Participation(NamedTuple):
    """Who is heard at a sync."""

    heard: Callable[[Key, Any, int], jax.Array]  # (key of the run, t, K) -> bool[K]
    check: Callable[[int, int], None]  # refuses a number of steps or clients that does not fit
    everyone: bool = False
    spec: Spec = UNRECORDED


class Codec(NamedTuple):
    """How a body travels: arrays in the simulator, bytes on the wire, bits in the books.

    `bits` and `nbytes` take the body's size and the run's word length (32 or 64).
    """

    encode: Callable[[Params, Key], Any]
    decode: Callable[[Any, int], Params]
    bits: Callable[[int, int], float]
    nbytes: Callable[[int, int], int]
    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes, int, Any], Any]  # (data, size, dtype) -> code
    check: Callable[[int], None]  # refuses a body size that does not fit
    linear: bool = False  # decode(encode(x)) is x
    spec: Spec = UNRECORDED


class Collected(NamedTuple):
    """What the server gets to see of the bodies that arrived."""

    sum: Params  # of weight times body
    weight: Any  # sum of the weights
    count: Any  # how many bodies
    clients: int  # K, heard or not

    def mean(self, otherwise: Params) -> Params:
        """The weighted mean body; `otherwise` when nothing arrived."""
        return jnp.where(
            self.count > 0, self.sum / jnp.where(self.count > 0, self.weight, 1), otherwise
        )


class Collect(NamedTuple):
    """How the server sees bodies: `gather(bodies[n, D], weights[n], K)`; weight 0 did not arrive."""

    gather: Callable[[jax.Array, jax.Array, int], Collected]
    additive: bool  # may be summed in parts, over devices, or fused with the gradient
    spec: Spec = UNRECORDED


class Traits(NamedTuple):
    """Facts that an engine may exploit; the contract suite checks them against the plain path."""

    decides_with_broadcast: bool = False  # `model` is the last broadcast
    forgets_unheard: bool = False  # after `download` a client is a function of the broadcast alone
    # One step a round: the body is its gradient, and the weight does not depend on what was learnt.
    sends_gradient_at_broadcast: bool = False


class Algorithm(NamedTuple):
    """How it is learnt: pure functions for one client or the server, and declared parts."""

    start: Callable[[Params, int], tuple[Any, Callable[[Any], Any]]]
    model: Callable[[Any], Params]
    learn: Callable[[Any, Gradient, Any, At], Any]
    upload: Callable[[Any, At], tuple[Any, Params, Any]]
    merge: Callable[[Any, Collected, Gradient, Any], tuple[Any, Params]]
    download: Callable[[Any, Params, Any], Any]
    sync: Sync
    participation: Participation
    codec: Codec
    collect: Collect
    domain: Domain
    traits: Traits = Traits()
    spec: Spec = UNRECORDED
