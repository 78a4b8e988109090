"""An algorithm that uses every argument of every function: if two engines differ in one, its numbers differ."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from mainstem import extend as mx


class Client(NamedTuple):
    """What a client needs for its next step."""

    params: mx.Params
    unsent: mx.Params
    newest: Any  # its newest step that a broadcast contained


@mx.value
class Attentive(mx.Algorithm):
    """Moves its models by small amounts that depend on steps, clients, keys, `merged` and single messages."""

    step: mx.Step = mx.step_size(0.1)
    sync: mx.Sync = mx.any_sync()
    participation: mx.Participation = mx.any_participation()
    codec: mx.Codec = mx.any_codec()
    collect: mx.Collect = mx.any_sum()

    @property
    def domain(self) -> mx.Domain:
        return mx.parts.everything()

    def start(
        self, params: mx.Params, setting: mx.Setting
    ) -> tuple[mx.Params, Callable[[Any], Client]]:
        def client(k: Any) -> Client:
            return Client(params + 0.01 * k / setting.clients, jnp.zeros_like(params), jnp.int32(0))

        return params, client

    def model(self, client: Client) -> mx.Params:
        return client.params * (1 + 0.001 * client.newest)

    def learn(self, client: Client, gradient: mx.Gradient, seen: Any, at: mx.At) -> Client:
        slope = gradient(self.model(client), seen) + _noise(at, client.params)
        eta, _ = self.step.rate((), slope, at.t)
        return client._replace(
            params=client.params - eta * slope, unsent=client.unsent + slope * (1 + 0.01 * at.k)
        )

    def upload(self, client: Client, at: mx.At) -> tuple[Client, mx.Params, Any]:
        message = client.unsent + _noise(at, client.unsent)
        return client._replace(unsent=0.5 * client.unsent), message, self.participation.weight(at.k)

    def merge(
        self, server: mx.Params, got: mx.Collected, gradient: mx.Gradient, t: Any
    ) -> tuple[mx.Params, mx.Params]:
        eta, _ = self.step.rate((), server, t)
        late = 0.0 if got.each is None else jnp.sum(got.each.weights * (t - got.each.sent))
        move = eta * got.sum / got.clients + 0.001 * (got.weight - got.count + late)
        server = got.unless_empty(server - move, server)
        return server, server

    def download(
        self, client: Client, params: mx.Params, gradient: mx.Gradient, merged: Any, t: Any
    ) -> Client:
        fresh = jnp.where(
            merged > client.newest, 0.5, 1.0
        )  # of what is unsent, is still to be sent
        mixed = params + 0.1 * (client.params - params) + 0.001 / t
        return Client(mixed, client.unsent * fresh, merged)


def _noise(at: mx.At, like: mx.Params) -> mx.Params:
    draws = mx.random.bits(at.key, like.shape) % 1000
    return 1e-4 * draws.astype(like.dtype) / (1 + at.t + at.k)
