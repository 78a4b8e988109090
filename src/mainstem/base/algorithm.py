"""How it is learnt: an algorithm and the parts it is assembled from."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base.problem import Domain, Gradient, Problem
from mainstem.base.values import At, Params, Sample
from mainstem.random import Key
from mainstem.spec import UNRECORDED, Spec


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
