"""Replay: derives the draws and the samples of a run from its seed.

Every draw of a run is a function of (seed, purpose, step, client). Every sample is a function of its draw and
of what the stream sends. Engines, clients and measures all use this module, so that they cannot differ.
"""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random
from mainstem.base import SEVERAL, At, Flat, Problem, Sample, Sampler, Stream, cast
from mainstem.value import once


def at_one(key: Any, purpose: int, t: Any, k: Any) -> At:
    """Step t at client k, with its key for this purpose; `key` is the key of the run."""
    return At(t, k, random.fold(key, purpose, t, k))


def at_all(key: Any, purpose: int, t: Any, ks: Any) -> At:
    """Step t at the clients `ks` (an array), each with its own key for this purpose."""
    at_step = random.fold(key, purpose, t)
    return At(t, ks, jax.vmap(lambda each: random.fold(at_step, each))(ks))


def first_model(problem: Flat, key: Any, *, personal: bool = False) -> Any:
    """The model before step 1 of the run with this key: a vector, or a `Pair` if it is `personal`."""
    params = problem.init(random.fold(key, random.INIT))
    return problem.split(params) if personal else params


def arrived(sampler: Sampler, key: Any, drawn: Any, pieces: Any, t: Any, ks: Any) -> Sample:
    """The samples of the clients `ks` at step t; the first axis of `pieces` is the clients."""
    return sampler.samples(pieces, at_all(key, random.STREAM, t, ks), drawn)


def seen(
    problem: Problem, sampler: Sampler, key: Any, drawn: Any, pieces: Any, t: Any, ks: Any
) -> tuple[Any, Any]:
    """What is revealed to the clients at step t, and for each client 1 if it has a sample, else 0.

    Only for a problem that reveals the same for every decision.
    """
    vectors, at = Flat(problem), at_all(key, random.STREAM, t, ks)
    got = sampler.samples(pieces, at, drawn)
    faced = jax.vmap(vectors.one, in_axes=(None, 0, SEVERAL))(vectors.init(key), got, at)[0]
    here = jnp.ones(len(ks)) if got.count is None else (got.count > 0).astype(float)
    return faced, here.astype(jnp.result_type(float))


def given(stream: Stream, seed: int, first: int, last: int, dtype: str) -> tuple[Any, Any, Any]:
    """(sampler, what is drawn once, pieces of these steps), on the host and in the run's dtype."""
    pieces = stream.chunk(seed, first, last)
    return cast((stream.device, stream.drawn(seed), pieces), dtype)


def samples_at(
    stream: Stream, seed: int, k: int, first: int, last: int, dtype: str
) -> Iterator[Sample]:
    """The samples of client k at the steps `first` to `last` of the simulation with this seed."""
    key, precise = random.root(seed), dtype == "float64"
    ks = np.full(1, k, np.int32)
    for t in range(first, last + 1):
        with jax.enable_x64(precise):  # not across the yield: it is a setting of the entire thread
            sampler, drawn, pieces = given(stream, seed, t, t, dtype)
            mine = jax.tree.map(lambda x: x[0, k : k + 1], pieces)
            found = jax.device_get(_arrived(sampler, key, drawn, mine, np.int32(t), ks))
        sample: Sample = jax.tree.map(lambda x: x[0], found)
        yield sample


_arrived = jax.jit(arrived)


def first_samples(stream: Stream) -> Sample:
    """The samples of all clients at step 1 of a run with seed 0."""
    sampler, drawn, pieces = given(stream, 0, 1, 1, str(jnp.result_type(float)))
    return _first(sampler, drawn, _head(pieces), stream.clients)


def first_shapes(stream: Stream) -> Sample:
    """The shapes of `first_samples`, without computing the samples."""

    def shapes() -> Sample:
        pieces = _head(stream.chunk(0, 1, 1))
        make = functools.partial(_first, clients=stream.clients)
        return jax.eval_shape(make, stream.device, stream.drawn(0), pieces)

    return once(stream, f"shapes {jnp.result_type(float)}", shapes)


@functools.partial(jax.jit, static_argnames="clients")
def _first(sampler: Sampler, drawn: Any, pieces: Any, clients: int) -> Sample:
    return arrived(sampler, random.root(0), drawn, pieces, jnp.int32(1), jnp.arange(clients))


def _head(pieces: Any) -> Any:
    return jax.tree.map(lambda x: np.asarray(x)[0], pieces)
