"""Merging: the compiled functions of a hub's server. Equal runs in one process share them."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from mainstem import random
from mainstem.base import Algorithm, Arrivals, Flat, Gradient, Problem, Setting
from mainstem.engines import run_context
from mainstem.engines.federate.protocol.run_document import RunDocument


class Merging(NamedTuple):
    """The functions of an algorithm's server."""

    started: Callable[[Any], Any]  # the first model (None: the problem's) -> the first state
    merge: Callable[..., tuple[Any, Any]]  # state, arrivals, t -> state, what is broadcast
    current: Callable[[Any], Any]  # state -> what would be broadcast without new uploads
    encode: Callable[..., Any]  # what is broadcast, t -> its code


class Server(NamedTuple):
    """An algorithm and a problem, combined for a server."""

    algorithm: Algorithm
    problem: Flat
    setting: Setting

    @property
    def gradient(self) -> Gradient:
        """The problem's gradient."""
        return self.setting.gradient


def merging(document: RunDocument) -> Merging:
    """The functions of a run; call them with its precision."""
    given, seed = document.setting, document.rules.seed
    return _compiled(document.algorithm, document.source, given.clients, given.pending, seed)


def first_state(document: RunDocument, clients: int) -> Any:
    """The shapes of the first state for so many clients."""
    setting = document.setting._replace(clients=clients)
    server = Server(document.algorithm, document.problem, setting)
    key = random.root(document.rules.seed)
    return jax.eval_shape(lambda: _started(server, key, document.start))


@functools.lru_cache(maxsize=4)
def _compiled(
    algorithm: Algorithm, problem: Problem, clients: int, pending: int, seed: int
) -> Merging:
    vectors, key = Flat(problem), random.root(seed)
    server = Server(algorithm, vectors, Setting(clients, pending, vectors.gradient))

    def merged(state: Any, got: Arrivals, t: Any) -> tuple[Any, Any]:
        collected = algorithm.collect.gather(got, clients)
        return algorithm.merge(state, collected, server.gradient, t)

    def encoded(params: Any, t: Any) -> Any:
        assert algorithm.downlink is not None
        return run_context.encoded_broadcast(algorithm.downlink, params, key, t)

    return Merging(
        jax.jit(lambda first: _started(server, key, first)),
        jax.jit(merged),
        jax.jit(lambda state: run_context.current_broadcast(server, state)),
        jax.jit(encoded),
    )


def _started(server: Server, key: Any, first: Any) -> Any:
    first = run_context.first_params(server, key) if first is None else first
    return server.algorithm.start(first, server.setting)[0]
