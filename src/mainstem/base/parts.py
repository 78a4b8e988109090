"""Parts of an algorithm: a base class for each kind, with the facts that it declares."""

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
    """The step size 2 / (sigma (t + shift))."""

    sigma: float
    shift: float


class Step(Value):
    """A step-size rule: `rate(state, gradient, t)` gives the rate and the next state."""

    schedule: ClassVar[bool] = True  # depends on t alone
    coordinatewise: ClassVar[bool] = False  # a rate for each coordinate
    automatic: ClassVar[bool] = False  # chosen by `simulate`

    @property
    def always(self) -> float | None:
        """The rate if it is the same at every step, else None."""
        return None

    @property
    def falling(self) -> Falling | None:
        """The parameters of the rate if it falls as 1 / t, else None."""
        return None

    def init(self, params: Params) -> Any:
        """The state before the first step."""
        return ()

    @abc.abstractmethod
    def rate(self, state: Any, gradient: Any, t: Any) -> tuple[Any, Any]:
        """The rate at step t, and the next state."""


class Optimizer(Value):
    """A server optimizer: computes updates of the model from mean gradients, as in optax."""

    @abc.abstractmethod
    def init(self, params: Params) -> Any:
        """The state before the first update."""

    @abc.abstractmethod
    def update(self, gradient: Params, state: Any, params: Params) -> tuple[Params, Any]:
        """The update (to be added to `params`) and the next state."""


class Mirror(Value):
    """A mirror map on a domain, with its exact step, argmin <g, x> + B(x, params) / rate."""

    domain: Domain
    quadratic: ClassVar[bool] = False  # the divergence is |x - y|^2 / 2

    @property
    def dual_norm(self) -> str | None:
        """The norm of gradients ("l2" or "max") in whose dual the map is strongly convex, if there is one."""
        return None

    @property
    def strong_convexity(self) -> float:
        """The modulus of strong convexity in that norm."""
        return 1.0

    @property
    def separable(self) -> bool:
        """Whether the step is exact with a rate for each coordinate too."""
        return False

    @abc.abstractmethod
    def step(self, params: Params, gradient: Params, rate: Any) -> Params:
        """The next point."""

    @abc.abstractmethod
    def start(self, params: Params) -> Params:
        """The point to start at: `params`, or a point of the domain if the map is not defined at `params`."""

    def divergence(self, start: np.ndarray) -> float | None:
        """The largest Bregman divergence from `start` to a point of the domain, if it is known."""
        return None


class Sync(Value):
    """After which steps clients and server exchange messages."""

    silent: ClassVar[bool] = False  # never

    @property
    def period(self) -> int | None:
        """The steps between two syncs if these are always equal, else None."""
        return None

    @property
    def offset(self) -> int:
        """The step of the first sync; 0: the first sync is after one period."""
        return 0

    @abc.abstractmethod
    def after(self, steps: np.ndarray) -> np.ndarray:
        """Whether a sync follows each of these steps."""


class Participation(Value):
    """Which clients are sampled at a sync. Drawn from the run's key, so that any process can compute it."""

    apart: ClassVar[bool] = True  # a client's participation does not depend on the others'

    @property
    def everyone(self) -> bool:
        """Whether all clients are always sampled."""
        return False

    @abc.abstractmethod
    def heard(self, key: Key, t: Any, clients: int) -> jax.Array:
        """Which clients are sampled at step t, bool [clients]."""

    @property
    def chance(self) -> Any:
        """p_k, one number or one for each client, if clients are sampled independently; else None."""
        return None

    def check(self, steps: int, clients: int) -> None:
        """Raises an error if the number of steps or clients does not fit."""

    def expected(self, clients: int) -> float:
        """The mean number of clients that are sampled at a sync."""
        return float(clients)

    def weight(self, k: Any) -> Any:
        """The weight of a message of client k. The weighted sum over the sampled clients / `scale` is unbiased."""
        return 1.0

    def scale(self, clients: int) -> Any:
        """The divisor of the weighted sum."""
        return clients


class Codec(Value):
    """Encodes a message as arrays (simulation) or bytes (federation), and counts its bits.

    `bits` and `nbytes` take the size of the message and the word length of the run (32 or 64).
    """

    linear: ClassVar[bool] = False  # decode(encode(x)) is x
    unbiased: ClassVar[bool] = False  # the mean of decode(encode(x)) is x
    remembers: ClassVar[bool] = False  # what it leaves out is added to the next message

    @abc.abstractmethod
    def encode(self, vector: Params, key: Key) -> Any:
        """The code of a message."""

    @abc.abstractmethod
    def decode(self, code: Any, size: int) -> Params:
        """The message that the server gets from a code."""

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
        """The code from its bytes."""

    def check(self, size: int) -> None:
        """Raises an error if messages of this size do not fit."""

    def variance(self, size: int) -> float | None:
        """A bound on the mean squared error of a message over its squared norm; None: not known."""
        return None


class Arrivals(NamedTuple):
    """Messages that arrived at the server, one in each row; weight 0: the row is empty."""

    bodies: jax.Array  # [n, size]
    weights: jax.Array  # [n]
    client: jax.Array  # [n], the sender
    sent: jax.Array  # [n], the step at which it was sent
    base: jax.Array | None  # [n, D], the broadcast that its sender had then; if `based`


class Collected(NamedTuple):
    """The combined messages that arrived, as `merge` gets them."""

    sum: Params  # of weight times message
    weight: Any  # sum of the weights
    count: Any  # the number of messages
    clients: int  # K, sampled or not
    each: Arrivals | None = None  # the single messages

    def mean(self, otherwise: Params) -> Params:
        """The weighted mean of the messages; `otherwise` if nothing arrived."""
        return self.unless_empty(self.sum / jnp.where(self.count > 0, self.weight, 1), otherwise)

    def averaged(self, server: Params) -> tuple[Params, Params]:
        """The mean model as the server's next state and as its broadcast; `server` if nothing arrived."""
        mean = self.mean(otherwise=server)
        return mean, mean

    def unless_empty(self, new: Any, old: Any) -> Any:
        """`new`, or `old` if nothing arrived: an empty merge changes nothing."""
        return jax.tree.map(lambda x, y: jnp.where(self.count > 0, x, y), new, old)


class Collect(Value):
    """How the server combines uploads."""

    additive: ClassVar[bool] = (
        False  # may be summed in parts, over devices, or fused with the gradient
    )

    @property
    def based(self) -> bool:
        """Whether it needs the broadcast that each sender had when it sent the message."""
        return False

    @abc.abstractmethod
    def gather(self, got: Arrivals, clients: int) -> Collected:
        """Combines the messages that arrived."""
