"""Settings of a simulation: the checks of the arguments that do not depend on the algorithm."""

import dataclasses
import numbers
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from mainstem import check
from mainstem.advice.auto_step import settled
from mainstem.base import Stream
from mainstem.base.types import DTYPES
from mainstem.engines.simulate.admission import admit
from mainstem.engines.simulate.devices import Layout, layout
from mainstem.engines.simulate.job import Configuration, Job
from mainstem.parts import network as wired


@dataclasses.dataclass(frozen=True)
class Settings:
    """The checked arguments that all configurations share."""

    steps: int
    seeds: list[int]
    dtype: str
    weights: np.ndarray | None
    layout: Layout
    plain: bool
    chunk: int | None
    every: int


def settings_of(
    owner: str,
    stream: Stream,
    steps: int,
    seed: int,
    seeds: int | Sequence[int] | None,
    dtype: str,
    weights: Sequence[float] | None,
    devices: int | Sequence[Any] | None,
    chunk: int | None,
    plain: bool,
    every: int,
) -> Settings:
    """Checks the arguments; `owner` is the name of the function that got them."""
    check.instance(owner, "stream", stream, Stream, "streams.digits(clients=100)")
    steps = check.integer(owner, "steps", steps, least=1)
    check.one_of(owner, "dtype", dtype, DTYPES)
    if chunk is not None:
        check.integer(owner, "chunk", chunk, least=1)
    check.integer(owner, "every", every, least=1)
    if steps % every:
        raise check.refuse(owner, "every", f"be a divisor of {steps}, the steps", every)
    listed = _seeds(owner, seed, seeds)
    return Settings(
        steps=steps,
        seeds=listed,
        dtype=dtype,
        weights=_weights(owner, weights, stream.clients),
        layout=layout(devices, len(listed)),
        plain=plain,
        chunk=chunk,
        every=every,
    )


def links_of(owner: str, network: wired, stream: Stream, steps: int) -> wired:
    """The delays of the clients' links."""
    check.instance(owner, "network", network, wired, "network(up=1)")
    return wired() if network.instant else network.fitted(stream.clients, steps)


def admitted(
    configurations: Sequence[Configuration],
    stream: Stream,
    found: Settings,
    measure: Sequence[str] | None,
) -> Job:
    """The job of these configurations, each checked and with its automatic step."""
    measured: tuple[str, ...] = ()
    ready = []
    rollouts = len(configurations) * len(found.seeds)
    for algorithm, problem, wires in configurations:
        trip = 1 + int(np.max(wires.up) + np.max(wires.down))
        with jax.enable_x64(found.dtype == "float64"):
            measured = admit(
                algorithm, problem, stream, found.steps, measure, found.every, rollouts
            )
        algorithm = settled(
            algorithm, problem, stream, steps=found.steps, seed=found.seeds[0], round_trip=trip
        )
        ready.append(Configuration(algorithm, problem, wires))
    return Job(configurations=tuple(ready), stream=stream, measure=measured, **vars(found))


def _seeds(owner: str, seed: int, seeds: int | Sequence[int] | None) -> list[int]:
    if seeds is None:
        return [check.integer(owner, "seed", seed, least=0, most=2**63 - 1)]
    if not isinstance(seeds, numbers.Integral | Sequence) or isinstance(seeds, str):
        raise check.refuse(owner, "seeds", "be a number of seeds or a list of them", seeds)
    if isinstance(seeds, numbers.Integral):
        first = check.integer(owner, "seed", seed, least=0, most=2**62)
        return list(range(first, first + check.integer(owner, "seeds", seeds, least=1)))
    if not len(seeds):
        raise check.refuse(owner, "seeds", "name at least one seed", seeds)
    return [check.integer(owner, "seeds", each, least=0, most=2**63 - 1) for each in seeds]


def _weights(owner: str, weights: Sequence[float] | None, clients: int) -> np.ndarray | None:
    if weights is None:
        return None
    wanted = f"be {clients} numbers of at least 0, not all 0"
    try:
        array = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise check.refuse(owner, "weights", wanted, weights) from None
    fine = array.shape == (clients,) and np.isfinite(array).all()
    if not fine or (array < 0).any() or not array.any():
        raise check.refuse(owner, "weights", wanted, weights)
    return array
