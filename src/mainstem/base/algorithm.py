"""Algorithms: the base class, and the facts about an algorithm that engines, advice and theory read."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypedDict

import jax.numpy as jnp

from mainstem.base.domain import Domain
from mainstem.base.parts import Codec, Collect, Collected, Mirror, Participation, Sync
from mainstem.base.problem import Gradient, Problem
from mainstem.base.types import At, Params, Sample
from mainstem.value import Value


class PartsButSync(TypedDict, total=False):
    """The parts without `sync`, as keywords: for algorithms that set `sync` from other parameters."""

    participation: Participation
    codec: Codec
    collect: Collect
    downlink: Codec


class Parts(PartsButSync, total=False):
    """The parts that most algorithms take, as keywords."""

    sync: Sync


class Traits(NamedTuple):
    """Facts that an engine may exploit; the contract suite checks them against the reference path."""

    decides_with_broadcast: bool = False  # `model` is the last broadcast
    forgets_unheard: bool = False  # after `download` a client is a function of the broadcast alone
    # Without delays, the fields of a client's state that are no function of the broadcast right
    # after a `download`; None: all fields.
    carries: tuple[str, ...] | None = None
    # One step per sync: the message is its gradient, and the weight is independent of the samples.
    sends_gradient_at_broadcast: bool = False


class Setting(NamedTuple):
    """The facts about a run that an algorithm gets at its start."""

    clients: int  # K
    pending: int  # the most messages of a client that can be in flight (up and back) at once
    gradient: Gradient  # of the problem


GRADIENTS, MODELS, SUMS = "gradients", "models", "sums"


class Algorithm(Value):
    """An algorithm: pure functions for one client or the server, and its parts."""

    # True: a part of the model stays at the client. Params are a `Pair`, each part is in the domain,
    # and broadcasts contain the shared part.
    personal: ClassVar[bool] = False
    # True: its server compares the messages of the clients, and bounds what one of them can do.
    guards: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def sync(self) -> Sync:
        """After which steps clients and server exchange messages."""

    @property
    @abc.abstractmethod
    def participation(self) -> Participation:
        """Which clients are sampled at a sync."""

    @property
    @abc.abstractmethod
    def codec(self) -> Codec:
        """How its messages are encoded."""

    @property
    @abc.abstractmethod
    def collect(self) -> Collect:
        """How the server combines uploads."""

    @property
    def downlink(self) -> Codec | None:
        """How its broadcasts are encoded; None: they are plain."""
        return None

    @property
    def sends(self) -> str | None:
        """What the server computes from the messages, for advice and `step="auto"`.

        The mean of GRADIENTS at the broadcast, the mean of MODELS after local steps, or SUMS of
        gradients; None: not known.
        """
        return None

    @property
    def corrects_bias(self) -> bool:
        """Whether it uses error feedback: what a biased codec leaves out is sent later."""
        return self.codec.remembers

    @property
    def family(self) -> str | None:
        """The module of `mainstem.theory` whose theorems cover it; None: no theorem does."""
        return None

    @property
    @abc.abstractmethod
    def domain(self) -> Domain:
        """The set of its models."""

    @property
    def mirror(self) -> Mirror | None:
        """The geometry of its steps; None: euclidean."""
        return None

    @property
    def traits(self) -> Traits:
        """Facts that an engine may exploit."""
        return Traits()

    @property
    def checks_samples(self) -> bool:
        """Whether `check` does anything: it takes time to collect the first samples of many clients."""
        return type(self).check is not Algorithm.check

    def check(self, problem: Problem, samples: Sample, steps: int) -> None:
        """Raises an error if the run does not fit; `samples` are the first samples of all clients."""

    @abc.abstractmethod
    def start(self, params: Any, setting: Setting) -> tuple[Any, Callable[[Any], Any]]:
        """The first state of the server, and a function of k that gives the first state of client k."""

    @abc.abstractmethod
    def model(self, client: Any) -> Any:
        """The model with which the client decides now."""

    @abc.abstractmethod
    def learn(self, client: Any, gradient: Gradient, seen: Any, at: At) -> Any:
        """The client after it has learnt from `seen`, what was revealed after its decision."""

    @abc.abstractmethod
    def upload(self, client: Any, at: At) -> tuple[Any, Params, Any]:
        """The client after its upload, the message and its weight; weight 0: there is no message."""

    def most_weight(self, k: Any) -> Any:
        """The largest weight of a message of client k: a hub refuses a larger one."""
        return jnp.maximum(1.0, self.participation.weight(k))

    def sent(self, client: Any, message: Params, decoded: Params, heard: Any) -> Any:
        """The client after its message was encoded, and `decoded` by the server if the client is `heard`."""
        return client

    @abc.abstractmethod
    def merge(self, server: Any, got: Collected, gradient: Gradient, t: Any) -> tuple[Any, Params]:
        """The server after it has merged what arrived, and its broadcast."""

    @abc.abstractmethod
    def download(self, client: Any, params: Params, gradient: Gradient, merged: Any, t: Any) -> Any:
        """The client with a newer broadcast, made by the merge of step t.

        `merged` is the newest step of this client that the broadcast contains.
        """


class ModelAveraging(Algorithm):
    """An algorithm whose clients send models, and whose server averages those that arrive."""

    sends = MODELS

    def merge(
        self, server: Params, got: Collected, gradient: Gradient, t: Any
    ) -> tuple[Params, Params]:
        return got.averaged(server)
