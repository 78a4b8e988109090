"""Models travel up: the general form of FedOMD, FedSEA and learning alone (Mitra, Hassani and Pappas 2021)."""

from collections.abc import Callable
from typing import Any, NamedTuple

from mainstem import check
from mainstem.base import (
    MODELS,
    Algorithm,
    At,
    Codec,
    Collect,
    Collected,
    Domain,
    Gradient,
    Mirror,
    Params,
    Participation,
    Setting,
    Step,
    Sync,
)
from mainstem.parts import euclidean, every, everyone, plain, total
from mainstem.parts.step import step_size
from mainstem.value import part, static, value


class Client(NamedTuple):
    """What a client needs for its next step."""

    params: Params  # x_i, the client's own model
    step: Any  # the state of its step-size rule


@value
class SendModels(Algorithm):
    r"""Each client takes mirror steps on its own losses; at a sync all take the mean of their models.

    Algorithm 1 of Mitra et al.: client i decides with its own :math:`x_{i,t}` and moves to (eq. (3))

    .. math:: y_{i,t+1} = \arg\min_{x \in X} \langle \nabla \ell_{i,t}(x_{i,t}), x \rangle
              + B_\psi(x, x_{i,t}) / \eta_t,

    which becomes its next model (eq. (5)), unless step t is a sync: then the mean of those heard
    does, for all clients (eq. (4) and Section VII). `mirror` brings :math:`\psi` and X. `family` is
    the paper whose theorems a bound is taken from: fedomd or fedsea.

    >>> import mainstem as ms
    >>> ms.algorithms.SendModels(step=0.1, codec=ms.parts.half())
    fedomd(step=0.1, codec=half())
    """

    step: Step = step_size()
    mirror: Mirror = part(Mirror, "euclidean()", default=euclidean())
    sync: Sync = part(Sync, "every(5)", default=every(1))
    participation: Participation = part(Participation, "exactly(5)", default=everyone())
    codec: Codec = part(Codec, "plain()", default=plain())
    collect: Collect = part(Collect, "median()", default=total())
    family: str = static(default="fedomd")

    sends = MODELS

    def admit(self) -> None:
        if self.step.coordinatewise and not self.mirror.separable:
            wanted = f"have one rate for all coordinates on the {self.mirror.domain.title}"
            raise check.refuse("fedomd", "step", wanted, self.step)
        if self.collect.based:
            wanted = "give a mean: total(), median(), trimmed_mean(0.1) or clipped(1)"
            raise check.refuse("fedomd", "collect", wanted, self.collect)

    @property
    def domain(self) -> Domain:
        return self.mirror.domain

    def start(self, params: Params, setting: Setting) -> tuple[Params, Callable[[Any], Client]]:
        first = self.mirror.start(params)
        return first, lambda k: Client(first, self.step.init(first))

    def model(self, client: Client) -> Params:
        return client.params

    def learn(self, client: Client, gradient: Gradient, seen: Any, at: At) -> Client:
        slope = gradient(client.params, seen)
        eta, state = self.step.rate(client.step, slope, at.t)
        return Client(self.mirror.step(client.params, slope, eta), state)

    def upload(self, client: Client, at: At) -> tuple[Client, Params, Any]:
        return client, client.params, 1.0

    def merge(
        self, server: Params, got: Collected, gradient: Gradient, t: Any
    ) -> tuple[Params, Params]:
        mean = got.mean(otherwise=server)
        return mean, mean

    def download(self, client: Client, params: Params, gradient: Gradient, merged: Any) -> Client:
        return client._replace(params=params)
