"""The kinds of parts that an algorithm is assembled from, and what each declares about itself."""

import abc
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base.domain import Domain
from mainstem.base.types import Params
from mainstem.random import Key
from mainstem.value import Value


class Falling(NamedTuple):
    """The step 2 / (sigma (t + shift))."""

    sigma: float
    shift: float


class Step(Value):
    """A step-size rule: `rate(state, gradient, t)` gives the rate and the next state."""

    schedule: ClassVar[bool] = True  # depends on t alone
    coordinatewise: ClassVar[bool] = False  # a rate for each coordinate
    automatic: ClassVar[bool] = False  # left to `simulate`

    @property
    def always(self) -> float | None:
        """The rate, where it is the same at every step."""
        return None

    @property
    def falling(self) -> Falling | None:
        """How the rate falls, where it is one over time."""
        return None

    def init(self, params: Params) -> Any:
        """The state before the first step."""
        return ()

    @abc.abstractmethod
    def rate(self, state: Any, gradient: Any, t: Any) -> tuple[Any, Any]:
        """The rate at step t, and the next state."""


class Optimizer(Value):
    """How a server moves by the mean gradient that it forms, in optax's terms."""

    @abc.abstractmethod
    def init(self, params: Params) -> Any:
        """The state before the first move."""

    @abc.abstractmethod
    def update(self, gradient: Params, state: Any, params: Params) -> tuple[Params, Any]:
        """The move (to be added to `params`) and the next state."""


class Mirror(Value):
    """A mirror map on a domain: its exact step, argmin <g, x> + B(x, params) / rate."""

    domain: Domain
    dual_norm: ClassVar[str | None] = (
        None  # of gradients, where the map is 1-strongly convex: l2, max
    )

    @property
    def separable(self) -> bool:
        """Whether a rate for each coordinate keeps the step exact."""
        return False

    @abc.abstractmethod
    def step(self, params: Params, gradient: Params, rate: Any) -> Params:
        """The next point."""

    @abc.abstractmethod
    def start(self, params: Params) -> Params:
        """The nearest point at which the map is defined."""

    def divergence(self, start: np.ndarray) -> float | None:
        """The largest Bregman divergence from `start` to a point of the domain, where it is known."""
        return None


class Sync(Value):
    """After which steps the clients and the server talk."""

    silent: ClassVar[bool] = False  # never

    @property
    def period(self) -> int | None:
        """The gap between syncs, where all are equal."""
        return None

    @property
    def offset(self) -> int:
        """The first sync, where it is not after the first period."""
        return 0

    @abc.abstractmethod
    def after(self, steps: np.ndarray) -> np.ndarray:
        """Whether a sync follows each of these steps."""


class Participation(Value):
    """Who is heard at a sync. Drawn from the run's key, so that any process can know it."""

    apart: ClassVar[bool] = True  # each client can tell alone whether it is heard

    @property
    def everyone(self) -> bool:
        """Whether all clients are always heard."""
        return False

    @abc.abstractmethod
    def heard(self, key: Key, t: Any, clients: int) -> jax.Array:
        """Who is heard at step t, bool [clients]."""

    @property
    def chance(self) -> Any:
        """p_k, one or one for each client, where every client tosses a coin of its own; else None."""
        return None

    def check(self, steps: int, clients: int) -> None:
        """Refuses a number of steps or clients that does not fit."""

    def expected(self, clients: int) -> float:
        """How many are heard at a sync, in the mean."""
        return float(clients)

    def weight(self, k: Any) -> Any:
        """How much a message of client k counts, so that the sum over those heard, over `scale`, is unbiased."""
        return 1.0

    def scale(self, clients: int) -> Any:
        """What the weighted sum is divided by."""
        return clients


class Codec(Value):
    """How a body travels: arrays in the simulator, bytes on the wire, bits in the books.

    `bits` and `nbytes` take the body's size and the run's word length (32 or 64).
    """

    linear: ClassVar[bool] = False  # decode(encode(x)) is x
    unbiased: ClassVar[bool] = False  # decode(encode(x)) is x in the mean

    @abc.abstractmethod
    def encode(self, vector: Params, key: Key) -> Any:
        """The code of a body."""

    @abc.abstractmethod
    def decode(self, code: Any, size: int) -> Params:
        """The body as the server reads it."""

    @abc.abstractmethod
    def bits(self, size: int, word: int) -> float:
        """The bits of a code, by formula."""

    @abc.abstractmethod
    def nbytes(self, size: int, word: int) -> int:
        """The bytes of a packed code."""

    @abc.abstractmethod
    def pack(self, code: Any) -> bytes:
        """The code as bytes."""

    @abc.abstractmethod
    def unpack(self, data: bytes, size: int, dtype: Any) -> Any:
        """The code again."""

    def check(self, size: int) -> None:
        """Refuses a body size that does not fit."""

    def variance(self, size: int) -> float | None:
        """At most the mean squared error of a body, in squared lengths of it; None: not known."""
        return None


class Arrivals(NamedTuple):
    """Bodies that arrived at the server, one in each place; weight 0: the place is empty."""

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
        return self.unless_empty(self.sum / jnp.where(self.count > 0, self.weight, 1), otherwise)

    def averaged(self, server: Params) -> tuple[Params, Params]:
        """The mean model as the server's next state and as its broadcast; nothing arrived: as it was."""
        mean = self.mean(otherwise=server)
        return mean, mean

    def unless_empty(self, new: Any, old: Any) -> Any:
        """`new`, but `old` when nothing arrived: a merge of nothing changes nothing."""
        return jax.tree.map(lambda x, y: jnp.where(self.count > 0, x, y), new, old)


class Collect(Value):
    """How the server sees the bodies that arrived."""

    additive: ClassVar[bool] = (
        False  # may be summed in parts, over devices, or fused with the gradient
    )

    @property
    def based(self) -> bool:
        """Whether it wants to know the broadcast that each sender held."""
        return False

    @abc.abstractmethod
    def gather(self, got: Arrivals, clients: int) -> Collected:
        """What the server gets to see."""
