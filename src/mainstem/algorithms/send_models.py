"""SendModels: clients send models.

The general form of FedOMD, FedSEA and `independent` (Mitra, Hassani and Pappas 2021).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from mainstem import extend as mx


class Client(NamedTuple):
    """What a client needs for its next step."""

    params: mx.Params  # x_i, the client's own model
    step: Any  # the state of its step-size rule


@mx.value
class SendModels(mx.ModelAveraging):
    r"""Each client takes mirror steps on its own losses; at a sync all take the mean of their models.

    Algorithm 1 of Mitra et al.: client i decides with its own :math:`x_{i,t}` and computes (eq. (3))

    .. math:: y_{i,t+1} = \arg\min_{x \in X} \langle \nabla \ell_{i,t}(x_{i,t}), x \rangle
              + B_\psi(x, x_{i,t}) / \eta_t,

    which becomes its next model (eq. (5)), unless a sync follows step t: then the next model of all
    clients is the mean over the sampled clients (eq. (4) and Section VII). `mirror` gives :math:`\psi` and
    X. `family` is the paper whose theorems give the bounds: fedomd or fedsea.

    >>> import mainstem as ms
    >>> ms.algorithms.SendModels(step=0.1, codec=ms.parts.half())
    fedomd(step=0.1, codec=half())
    """

    step: mx.Step = mx.step_size()
    mirror: mx.Mirror = mx.part(mx.Mirror, "euclidean()", default=mx.parts.euclidean())
    sync: mx.Sync = mx.any_sync()
    participation: mx.Participation = mx.any_participation()
    codec: mx.Codec = mx.any_codec()
    collect: mx.Collect = mx.any_sum()
    downlink: mx.Codec | None = mx.any_downlink()
    family: str = mx.one_of("fedomd", "fedsea", default="fedomd")

    def admit(self) -> None:
        if self.step.coordinatewise and not self.mirror.separable:
            wanted = f"have one rate for all coordinates on the {self.mirror.domain.title}"
            raise mx.check.refuse(type(self).__name__, "step", wanted, self.step)

    @property
    def domain(self) -> mx.Domain:
        return self.mirror.domain

    def start(
        self, params: mx.Params, setting: mx.Setting
    ) -> tuple[mx.Params, Callable[[Any], Client]]:
        first = self.mirror.start(params)
        return first, lambda k: Client(first, self.step.init(first))

    def model(self, client: Client) -> mx.Params:
        return client.params

    def learn(self, client: Client, gradient: mx.Gradient, seen: Any, at: mx.At) -> Client:
        slope = gradient(client.params, seen)
        eta, state = self.step.rate(client.step, slope, at.t)
        return Client(self.mirror.step(client.params, slope, eta), state)

    def upload(self, client: Client, at: mx.At) -> tuple[Client, mx.Params, Any]:
        return client, client.params, 1.0

    def download(
        self, client: Client, params: mx.Params, gradient: mx.Gradient, merged: Any, t: Any
    ) -> Client:
        return client._replace(params=params)
