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


class Pair(NamedTuple):
    """A model in two parts: one that all clients share and one that never leaves its client."""

    shared: Any
    own: Any


class At(NamedTuple):
    """Where and when: step `t` (1-based), client `k` (0-based) and the key of this occasion."""

    t: Any
    k: Any
    key: Key


class Sample(NamedTuple):
    """What one client gets in one step: what it is shown, and what is hidden until it has decided.

    `count` says how many samples this is: None for one, 0 where nothing came (loss 0, nothing is
    learnt), n for the first n of a batch.
    """

    shown: Any
    hidden: Any
    count: Any = None


class Batch(NamedTuple):
    """What a client has seen where many samples came at once, and how much each of them counts."""

    items: Any  # leaves [n, ...]
    weights: Any  # [n], summing to 1; 0: no sample


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

    def times(self, factor: Any) -> "Form":
        """The loss times a number."""
        return Form(*(factor * part for part in self))


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
    residual: Residual | None = None  # where the prediction is the sum of a shared and an own part
    news: Callable[[Any], Any] | None = None  # seen -> is there anything to learn; None: always
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


def joined(features: Any, *numbers: Any) -> Any:
    """One vector: features, then single numbers."""
    return jnp.concatenate([features, jnp.stack([jnp.asarray(n, features.dtype) for n in numbers])])


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
    # seed -> what is drawn once for a whole run; `sample` then gets (resident, its share of it)
    drawn: Callable[[int], "Drawn"] | None = None
    # (resident, piece, t) -> the minimiser of the aggregate risk at step t - 1, if known
    minimiser: Callable[[Any, Any, Any], Params] | None = None
    exam: Callable[[int], "Exam"] | None = None  # seed -> samples held out, if there are any
    spec: Spec = UNRECORDED

    def known(self, seed: int) -> Any:
        """What all samples of a run with this seed are made from."""
        return self.resident if self.drawn is None else (self.resident, self.drawn(seed))

    def samples(self, known: Any, pieces: Any, at: At) -> Sample:
        """The samples of the clients `at.k`, in order; `pieces` has their axis first."""
        return sampled(self.sample, self.drawn is not None)(known, pieces, at)


class Drawn(NamedTuple):
    """What a run draws once. `sample` gets its client's and its step's share of it."""

    common: Any = ()  # the same for all
    each: Any = ()  # leaves [clients, ...]
    cycle: Any = ()  # leaves [n, clients, ...]: step t has the ((t - 1) mod n)-th


SEVERAL = At(None, 0, 0)  # type: ignore[arg-type]  # one step, several clients, each with its key


def sampled(sample: Callable[..., Sample], drawn: bool) -> Callable[[Any, Any, At], Sample]:
    """A stream's `sample` for several clients at once."""

    def one(known: Any, piece: Any, at: At) -> Sample:
        return _present(sample(known, piece, at))

    def several(known: Any, pieces: Any, at: At) -> Sample:
        if not drawn:
            return jax.vmap(one, in_axes=(None, 0, SEVERAL))(known, pieces, at)
        resident, run = known

        def now(x: Any) -> Any:
            return jax.lax.dynamic_index_in_dim(x, (at.t - 1) % len(x), keepdims=False)

        def asked(x: Any) -> Any:
            return x if len(x) == len(at.k) else x[at.k]  # as many as there are: all, in order

        turn = jax.tree.map(now, run.cycle)
        run = Drawn(run.common, *jax.tree.map(asked, (run.each, turn)))
        axes = (None, Drawn(None, 0, 0)), 0, SEVERAL
        return jax.vmap(one, in_axes=axes)((resident, run), pieces, at)

    return several


def _present(sample: Sample) -> Sample:
    """Where nothing came there may be anything, even NaN: it is read as zeros."""
    if sample.count is None:
        return sample
    here = jnp.asarray(sample.count) > 0

    def kept(x: Any) -> Any:
        return jnp.where(here, x, jnp.zeros_like(x))

    return sample._replace(**jax.tree.map(kept, {"shown": sample.shown, "hidden": sample.hidden}))


class Exam(NamedTuple):
    """Samples held out of a stream, the same for all clients, and how each client is judged by them."""

    shown: Any  # leaves [n, ...]
    hidden: np.ndarray  # [clients, n], the answer in each client's own task
    weights: np.ndarray  # [clients, n], summing to 1 for each client; 0: not in its task


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


class Arrivals(NamedTuple):
    """Bodies at the server's door, one in each place; weight 0: the place is empty."""

    bodies: jax.Array  # [n, size]
    weights: jax.Array  # [n]
    client: jax.Array  # [n], who sent it
    sent: jax.Array  # [n], at which step
    base: jax.Array | None  # [n, D], the broadcast its sender held then; only where it is asked for


class Collected(NamedTuple):
    """What the server gets to see of the bodies that arrived."""

    sum: Params  # of weight times body
    weight: Any  # sum of the weights
    count: Any  # how many bodies
    clients: int  # K, heard or not
    each: Arrivals | None = None  # the bodies one by one

    def mean(self, otherwise: Params) -> Params:
        """The weighted mean body; `otherwise` when nothing arrived."""
        return jnp.where(
            self.count > 0, self.sum / jnp.where(self.count > 0, self.weight, 1), otherwise
        )


class Collect(NamedTuple):
    """How the server sees bodies: `gather(arrivals, K)`."""

    gather: Callable[[Arrivals, int], Collected]
    additive: bool  # may be summed in parts, over devices, or fused with the gradient
    based: bool = False  # wants to know the broadcast that each sender held
    spec: Spec = UNRECORDED


class Traits(NamedTuple):
    """Facts that an engine may exploit; the contract suite checks them against the plain path."""

    decides_with_broadcast: bool = False  # `model` is the last broadcast
    forgets_unheard: bool = False  # after `download` a client is a function of the broadcast alone
    # On instant links, the fields of a client's state that are no function of the broadcast right
    # after a `download`; None: all of them.
    carries: tuple[str, ...] | None = None
    # One step a round: the body is its gradient, and the weight does not depend on what was learnt.
    sends_gradient_at_broadcast: bool = False


class Setting(NamedTuple):
    """The run that an algorithm starts in."""

    clients: int  # K
    pending: int  # how many of a client's messages can be on their way up and back at once, at most
    gradient: Gradient  # the problem's


class Algorithm(NamedTuple):
    """How it is learnt: pure functions for one client or the server, and declared parts."""

    start: Callable[[Any, Setting], tuple[Any, Callable[[Any], Any]]]
    model: Callable[[Any], Any]
    learn: Callable[[Any, Gradient, Any, At], Any]
    upload: Callable[[Any, At], tuple[Any, Params, Any]]
    merge: Callable[[Any, Collected, Gradient, Any], tuple[Any, Params]]
    download: Callable[[Any, Params, Gradient, Any], Any]
    sync: Sync
    participation: Participation
    codec: Codec
    collect: Collect
    domain: Domain
    traits: Traits = Traits()
    # A part of the model stays at the client: params are a `Pair`, each part in the domain, and
    # broadcasts are the shared part.
    personal: bool = False
    # Refuses a run that does not fit: (problem, the first samples of all clients, steps).
    check: Callable[[Problem, Sample, int], None] | None = None
    spec: Spec = UNRECORDED
