"""A simulated client's samples, one by one."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import experiment, random, streams
from mainstem.base import At, Sample, Stream, cast
from tests.contract.cases import CASES

SYNCING = [  # cases that sync, and whose parts can be written in a run document
    name
    for name, case in CASES.items()
    if case.algorithm.sync.after(np.arange(1, 200)).any() and name != "fedogd schedule"
]


def stream_of(content: dict[str, Any]) -> Stream:
    """The stream of an experiment file, or that of an algorithm under contract, by its `case`."""
    if "case" in content:
        return CASES[content["case"]].world(content["federate"]["clients"]).stream
    return experiment.made("stream", streams, content["stream"])


def samples(
    stream: Stream, seed: int, k: int, first: int, last: int, dtype: str
) -> Iterator[Sample]:
    """The samples of client k in the simulation with this seed, at steps `first` to `last`."""
    key = random.root(seed)

    @jax.jit
    def one(sampler, drawn, pieces, t):
        keys = random.fold(key, random.STREAM, t, jnp.int32(k))[None]
        ks = jnp.full(1, k, jnp.int32)
        found = sampler.samples(pieces, At(t, ks, keys), drawn)
        return jax.tree.map(lambda x: x[0], found)

    precise = dtype == "float64"
    with jax.enable_x64(precise):
        known = cast((stream.device, stream.drawn(seed)), dtype)
    for t in range(first, last + 1):
        with jax.enable_x64(precise):  # not across the yield: it is a setting of the entire thread
            pieces = jax.tree.map(lambda x: x[0, k : k + 1], stream.chunk(seed, t, t))
            sample = jax.device_get(one(*known, cast(pieces, dtype), np.int32(t)))
        yield sample
