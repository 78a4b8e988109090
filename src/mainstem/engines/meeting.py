"""An algorithm and a problem, met for a run: what any engine asks of them, for one client or the server."""

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random
from mainstem.base import Algorithm, Arrivals, At, Flat, Gradient, Setting

KEY = jax.ShapeDtypeStruct((2,), np.uint32)  # of a draw, as a shape


class Meeting(Protocol):
    """What is met."""

    @property
    def algorithm(self) -> Algorithm:
        """How it is learnt."""

    @property
    def problem(self) -> Flat:
        """What is at stake, in flat vectors."""

    @property
    def gradient(self) -> Gradient:
        """The problem's."""

    @property
    def setting(self) -> Setting:
        """The run that the algorithm starts in."""


def first_params(met: Meeting, key: Any) -> Any:
    """The model before step 1, as the algorithm takes it."""
    params = met.problem.init(random.fold(key, random.INIT))
    return met.problem.split(params) if met.algorithm.personal else params


def quiet(met: Meeting, like: Any) -> Arrivals:
    """A door at which nobody stands; `like` is the body that does not come."""
    params = jax.eval_shape(lambda key: first_params(met, key), KEY)
    base = params.shared if met.algorithm.personal else params
    return Arrivals(
        jnp.zeros((1, like.size), like.dtype),
        jnp.zeros(1, base.dtype),
        jnp.zeros(1, jnp.int32),
        jnp.zeros(1, jnp.int32),
        jnp.zeros((1, base.size), base.dtype) if met.algorithm.collect.based else None,
    )


def body(met: Meeting) -> Any:
    """A client's message, as a shape."""
    return jax.eval_shape(lambda key: first_message(met, key), KEY)


def first_message(met: Meeting, key: Any) -> Any:
    """What a client would say before it has learnt anything."""
    _, client_of = met.algorithm.start(first_params(met, key), met.setting)
    at = At(jnp.int32(1), jnp.int32(0), key)
    return met.algorithm.upload(client_of(jnp.int32(0)), at)[1]


def said_now(met: Meeting, server: Any) -> Any:
    """What the server would broadcast now, without having heard anything new."""
    collected = met.algorithm.collect.gather(quiet(met, body(met)), met.setting.clients)
    return met.algorithm.merge(server, collected, met.gradient, jnp.int32(1))[1]


def learnt_one(met: Meeting, client: Any, seen: Any, news: Any, at: At) -> Any:
    """One client after learning; as it was, if there was nothing to learn."""
    after = met.algorithm.learn(client, met.gradient, seen, at)
    return after if news is None else chosen(news, after, client)


def chosen(which: Any, new: Any, old: Any) -> Any:
    """`new` where `which` holds, else `old`."""
    return jax.tree.map(lambda x, y: jnp.where(which, x, y), new, old)
