"""A run's draws and samples, derived from its seed: the same in an engine, at a site, and in hindsight.

Everything random in a run is a function of (seed, purpose, step, client), and every sample one of that and of
what its stream sends. Engines and measures take both from here, so that they cannot differ.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random
from mainstem.base import SEVERAL, At, Flat, Problem, Sample, Sampler, Stream, cast


def at_one(key: Any, purpose: int, t: Any, k: Any) -> At:
    """Step t at client k, with its key for this purpose; `key` is the run's."""
    return At(t, k, random.fold(key, purpose, t, k))


def at_all(key: Any, purpose: int, t: Any, ks: Any) -> At:
    """Step t at the clients `ks` (an array), each with its own key for this purpose."""
    at_step = random.fold(key, purpose, t)
    return At(t, ks, jax.vmap(lambda each: random.fold(at_step, each))(ks))


def arrived(sampler: Sampler, key: Any, drawn: Any, pieces: Any, t: Any, ks: Any) -> Sample:
    """The samples of the clients `ks` at step t; `pieces` has their axis first."""
    return sampler.samples(pieces, at_all(key, random.STREAM, t, ks), drawn)


def seen(
    problem: Problem, sampler: Sampler, key: Any, drawn: Any, pieces: Any, t: Any, ks: Any
) -> tuple[Any, Any]:
    """What the clients saw at step t, and 1 for each that saw anything, else 0.

    For a problem that reveals the same whatever was decided.
    """
    vectors, at = Flat(problem), at_all(key, random.STREAM, t, ks)
    got = sampler.samples(pieces, at, drawn)
    faced = jax.vmap(vectors.one, in_axes=(None, 0, SEVERAL))(vectors.init(key), got, at)[0]
    here = jnp.ones(len(ks)) if got.count is None else (got.count > 0).astype(float)
    return faced, here.astype(jnp.result_type(float))


def given(stream: Stream, seed: int, first: int, last: int, dtype: str) -> tuple[Any, Any, Any]:
    """(the sampler, what is drawn once, the pieces of these steps), on the host in the run's dtype."""
    pieces = stream.chunk(seed, first, last)
    return cast((stream.device, stream.drawn(seed), pieces), dtype)


def first_samples(stream: Stream) -> Sample:
    """The samples of all clients at step 1 of a run with seed 0."""
    sampler, drawn, pieces = given(stream, 0, 1, 1, str(jnp.result_type(float)))
    return _first(sampler, drawn, _head(pieces), stream.clients)


def first_shapes(stream: Stream) -> Sample:
    """The same as shapes, without computing them."""
    pieces = _head(stream.chunk(0, 1, 1))
    make = functools.partial(_first, clients=stream.clients)
    return jax.eval_shape(make, stream.device, stream.drawn(0), pieces)


@functools.partial(jax.jit, static_argnames="clients")
def _first(sampler: Sampler, drawn: Any, pieces: Any, clients: int) -> Sample:
    return arrived(sampler, random.root(0), drawn, pieces, jnp.int32(1), jnp.arange(clients))


def _head(pieces: Any) -> Any:
    return jax.tree.map(lambda x: np.asarray(x)[0], pieces)
