"""How it is learnt: an algorithm, and the facts about it that engines, advice and theory read."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypedDict

from mainstem.base.domain import Domain
from mainstem.base.parts import Codec, Collect, Collected, Mirror, Participation, Sync
from mainstem.base.problem import Gradient, Problem
from mainstem.base.types import At, Params, Sample
from mainstem.value import Value


class PartsButSync(TypedDict, total=False):
    """What an algorithm takes as keywords whose name says when it syncs."""

    participation: Participation
    codec: Codec
    collect: Collect


class Parts(PartsButSync, total=False):
    """The parts that every algorithm takes, as keywords."""

    sync: Sync


class Traits(NamedTuple):
    """Facts that an engine may exploit; the contract suite checks them against the reference path."""

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


GRADIENTS, MODELS, SUMS = "gradients", "models", "sums"


class Algorithm(Value):
    """How it is learnt: pure functions for one client or the server, and declared parts."""

    # A part of the model stays at the client: params are a `Pair`, each part in the domain, and
    # broadcasts are the shared part.
    personal: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def sync(self) -> Sync:
        """After which steps it talks."""

    @property
    @abc.abstractmethod
    def participation(self) -> Participation:
        """Who is heard."""

    @property
    @abc.abstractmethod
    def codec(self) -> Codec:
        """How its messages travel."""

    @property
    @abc.abstractmethod
    def collect(self) -> Collect:
        """What the server sees of them."""

    @property
    def sends(self) -> str | None:
        """What the server makes of bodies, for advice and `step="auto"`.

        The mean of GRADIENTS at the broadcast, the mean of MODELS after local steps, or SUMS of
        gradients; None: neither is known.
        """
        return None

    @property
    def corrects_bias(self) -> bool:
        """Whether what a biased codec leaves out is sent later: error feedback."""
        return False

    @property
    def family(self) -> str | None:
        """Whose theorems speak of it: a module of `mainstem.theory`."""
        return None

    @property
    @abc.abstractmethod
    def domain(self) -> Domain:
        """Where its models live."""

    @property
    def mirror(self) -> Mirror | None:
        """The geometry of its steps; None: euclidean."""
        return None

    @property
    def traits(self) -> Traits:
        """What an engine may exploit."""
        return Traits()

    def check(self, problem: Problem, samples: Sample, steps: int) -> None:
        """Refuses a run that does not fit; `samples` are the first of all clients."""

    @abc.abstractmethod
    def start(self, params: Any, setting: Setting) -> tuple[Any, Callable[[Any], Any]]:
        """The server's state, and each client's: a function of k."""

    @abc.abstractmethod
    def model(self, client: Any) -> Any:
        """What the client decides with now."""

    @abc.abstractmethod
    def learn(self, client: Any, gradient: Gradient, seen: Any, at: At) -> Any:
        """The client after it has seen what its decision led to."""

    @abc.abstractmethod
    def upload(self, client: Any, at: At) -> tuple[Any, Params, Any]:
        """The client after a sync step, its message and the message's weight; 0: nothing to say."""

    @abc.abstractmethod
    def merge(self, server: Any, got: Collected, gradient: Gradient, t: Any) -> tuple[Any, Params]:
        """The server after what arrived, and its broadcast."""

    @abc.abstractmethod
    def download(self, client: Any, params: Params, gradient: Gradient, merged: Any) -> Any:
        """The client with a newer broadcast; `merged` is its newest step that the broadcast contains."""


class ModelAveraging(Algorithm):
    """An algorithm whose clients send models, and whose server takes the mean of those that arrive."""

    sends = MODELS

    def merge(
        self, server: Params, got: Collected, gradient: Gradient, t: Any
    ) -> tuple[Params, Params]:
        return got.averaged(server)
