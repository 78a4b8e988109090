"""Error feedback for any algorithm that sends gradients: its clients also keep the error of their last message."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from mainstem import check
from mainstem.base import Algorithm, At, Gradient, Setting, Traits, Wrapper
from mainstem.base.algorithm import MODELS
from mainstem.base.types import Params
from mainstem.spec import name_of
from mainstem.value import part, value


def applied(algorithm: Algorithm) -> Algorithm:
    """The algorithm with the memory that its codec asks for; itself, if the codec asks for none."""
    if not algorithm.codec.remembers:
        return algorithm
    if algorithm.sends == MODELS:
        wanted = "be without error feedback: messages are models, whose errors do not add up"
        raise check.refuse(name_of(algorithm), "codec", wanted, algorithm.codec)
    return WithErrors(algorithm)


class Client(NamedTuple):
    """A client, and the error of its last message."""

    state: Any
    error: Params


@value
class WithErrors(Wrapper):
    """`of`, with the error of each message added to the client's next one."""

    of: Algorithm = part(Algorithm, "fedogd(step=0.1)")

    @property
    def traits(self) -> Traits:
        """Without its memory a client may be a function of the broadcast."""
        of = self.of.traits
        carries = ("error",) if of.forgets_unheard else None
        return Traits(decides_with_broadcast=of.decides_with_broadcast, carries=carries)

    def start(self, params: Any, setting: Setting) -> tuple[Any, Callable[[Any], Client]]:
        server, client_of = self.of.start(params, setting)

        def first(k: Any) -> Client:
            state = client_of(k)
            _, message, _ = self.of.upload(state, At(jnp.int32(1), k, jnp.zeros(2, jnp.uint32)))
            return Client(state, jnp.zeros_like(message))

        return server, first

    def model(self, client: Client) -> Any:
        return self.of.model(client.state)

    def learn(self, client: Client, gradient: Gradient, seen: Any, at: At) -> Client:
        return client._replace(state=self.of.learn(client.state, gradient, seen, at))

    def upload(self, client: Client, at: At) -> tuple[Client, Params, Any]:
        state, message, weight = self.of.upload(client.state, at)
        return client._replace(state=state), message + client.error, weight

    def sent(self, client: Client, message: Params, decoded: Params, heard: Any) -> Client:
        return client._replace(error=jnp.where(heard, message - decoded, client.error))

    def download(
        self, client: Client, params: Params, gradient: Gradient, merged: Any, t: Any
    ) -> Client:
        return client._replace(state=self.of.download(client.state, params, gradient, merged, t))
