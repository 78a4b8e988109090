"""Inspecting: a wrapper whose server sees each message, and changes it before the wrapped algorithm merges."""

from typing import Any

import jax.numpy as jnp

from mainstem import extend as mx


class Inspecting(mx.Wrapper):
    """The algorithm `of`, whose messages its server collects one by one."""

    @property
    def collect(self) -> mx.Collect:
        """Every message; with its sender's broadcast, where a message is compared with it."""
        return mx.parts.each(base=self.sends_models or self.of.collect.based)

    @property
    def sends_models(self) -> bool:
        """Whether the change that a message asks for is its distance from its sender's broadcast."""
        return self.of.sends == mx.MODELS

    def origin(self, got: mx.Arrivals) -> Any:
        """What a message that asks for no change is equal to."""
        return got.base if self.sends_models else jnp.zeros((), got.bodies.dtype)

    def merge_changed(
        self, state: Any, got: mx.Arrivals, clients: int, gradient: mx.Gradient, t: Any
    ) -> tuple[Any, mx.Params]:
        """The wrapped algorithm's merge of the messages as they are now."""
        kept = got._replace(base=got.base if self.of.collect.based else None)
        return self.of.merge(state, self.of.collect.gather(kept, clients), gradient, t)
