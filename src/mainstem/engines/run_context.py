"""Functions of an algorithm and its problem that all engines share: first model, message shape, learning."""

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random, replay
from mainstem.base import Algorithm, Arrivals, At, Codec, Domain, Flat, Gradient, Setting
from mainstem.spec import name_of

KEY = jax.ShapeDtypeStruct((2,), np.uint32)  # the shape of a random key


class RunContext(Protocol):
    """An algorithm and a problem, combined for a run."""

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm."""

    @property
    def problem(self) -> Flat:
        """The problem, in flat vectors."""

    @property
    def gradient(self) -> Gradient:
        """The problem's gradient."""

    @property
    def setting(self) -> Setting:
        """The setting that the algorithm starts in."""


def first_params(context: RunContext, key: Any) -> Any:
    """The model before step 1, in the form that the algorithm takes."""
    return replay.first_model(context.problem, key, personal=context.algorithm.personal)


def no_arrivals(context: RunContext, like: Any) -> Arrivals:
    """Arrivals without an upload; `like` has the shape of a message body."""
    params = jax.eval_shape(lambda key: first_params(context, key), KEY)
    base = params.shared if context.algorithm.personal else params
    return Arrivals(
        jnp.zeros((1, like.size), like.dtype),
        jnp.zeros(1, base.dtype),
        jnp.zeros(1, jnp.int32),
        jnp.zeros(1, jnp.int32),
        jnp.zeros((1, base.size), base.dtype) if context.algorithm.collect.based else None,
    )


def body(context: RunContext) -> Any:
    """The shape of a client's message."""
    return jax.eval_shape(lambda key: first_message(context, key), KEY)


def first_message(context: RunContext, key: Any) -> Any:
    """The message that a client would upload before it has learnt anything."""
    _, client_of = context.algorithm.start(first_params(context, key), context.setting)
    at = At(jnp.int32(1), jnp.int32(0), key)
    return context.algorithm.upload(client_of(jnp.int32(0)), at)[1]


def current_broadcast(context: RunContext, server: Any) -> Any:
    """The model that the server would broadcast now, without new uploads."""
    nothing = no_arrivals(context, body(context))
    nothing = jax.lax.optimization_barrier(nothing)  # or XLA computes with its zeros as it compiles
    collected = context.algorithm.collect.gather(nothing, context.setting.clients)
    return context.algorithm.merge(server, collected, context.gradient, jnp.int32(1))[1]


def broadcast_size(context: RunContext) -> int:
    """The number of parameters in a broadcast: those of the shared part, if there is an own part."""
    params = jax.eval_shape(lambda key: first_params(context, key), KEY)
    return int((params.shared if context.algorithm.personal else params).size)


def check_broadcasts(algorithm: Algorithm, domain: Domain) -> None:
    """Raises an error if a decoded broadcast may lie outside the domain of the models."""
    codec = algorithm.downlink
    if codec is not None and not codec.linear and not domain.whole:
        wanted = f"be plain() on the {domain.title}: a decoded broadcast may lie outside it"
        raise check.refuse(name_of(algorithm), "downlink", wanted, codec)


def encoded_broadcast(codec: Codec, params: Any, key: Any, t: Any) -> Any:
    """The code of the broadcast of step t; `key` is that of the run."""
    return codec.encode(params, random.fold(key, random.BROADCAST, t))


def downloaded(context: RunContext, params: Any, key: Any, t: Any) -> Any:
    """The broadcast of step t as the clients decode it."""
    codec = context.algorithm.downlink
    if codec is None:
        return params
    return codec.decode(encoded_broadcast(codec, params, key, t), params.size)


def learnt_one(context: RunContext, client: Any, seen: Any, informative: Any, at: At) -> Any:
    """One client after learning; unchanged if there was nothing to learn."""
    after = context.algorithm.learn(client, context.gradient, seen, at)
    return after if informative is None else chosen(informative, after, client)


def chosen(which: Any, new: Any, old: Any) -> Any:
    """`new` where `which` holds, else `old`."""
    return jax.tree.map(lambda x, y: jnp.where(which, x, y), new, old)
