"""Compiled programs: the functions of a run on its path, over one seed or many.

The values of a run (algorithm, problem, stream) are arguments of the compiled functions: their numbers are
traced, so that another step size uses the same program, and JAX's own cache finds it again.
"""

import functools
import threading
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import Algorithm, Flat, Problem, Sampler, Setting
from mainstem.engines.run_context import KEY, first_message
from mainstem.engines.simulate.devices import Layout
from mainstem.engines.simulate.stage import EACH_LOSS, Feed, Row, Shape, Stage
from mainstem.parts import network


class Path(Protocol):
    """How a run is computed: the reference path, or the fast one, which gives the same numbers."""

    def begin(self, stage: Stage) -> Any:
        """The state before step 1."""

    def advance(self, stage: Stage, state: Any, feed: Feed, shape: Shape) -> tuple[Any, Row]:
        """The state after a chunk of steps, and a row for each."""

    def models(self, stage: Stage, state: Any) -> tuple[Any, Any]:
        """The server's model and each client's (None: the same)."""


class Values(NamedTuple):
    """The values of a run: the traced arguments of its program."""

    algorithm: Algorithm
    problem: Problem
    sampler: Sampler
    wires: network
    weights: Any


class Plan(NamedTuple):
    """The static arguments of a program, which are compiled in."""

    path: Path
    clients: int
    measure: tuple[str, ...]
    many: bool  # whether there is an axis of seeds
    layout: Layout
    slots: tuple[int, int] = (1, 1)
    pending: int = 1


class Program:
    """The compiled functions of a run."""

    def __init__(self, values: Values, plan: Plan):
        self.values, self.plan = values, plan
        self._known: set[Shape] = set()
        self._lock = threading.Lock()

    @property
    def stage(self) -> Stage:
        """The run's stage, uncompiled, without key and draws."""
        return _stage(self.values, self.plan, None, None)

    @property
    def sent(self) -> int:
        """The number of entries of a message."""
        return int(jax.eval_shape(_message, self.values, KEY, self.plan).size)

    def begin(self, key: Any, drawn: Any) -> Any:
        """The state before step 1, for each key."""
        return _begin(self.values, key, drawn, plan=self.plan)

    def advance(self, state: Any, key: Any, drawn: Any, feed: Feed, shape: Shape) -> Any:
        """The state after a chunk, and its rows. Two threads that ask for one shape compile it once."""
        given = self.values, state, key, drawn, feed
        if shape in self._known:
            return _advance(*given, plan=self.plan, shape=shape)
        with self._lock:
            done = _advance(*given, plan=self.plan, shape=shape)
            self._known.add(shape)
        return done

    def models(self, state: Any) -> Any:
        """The server's model and each client's."""
        return _models(self.values, state, plan=self.plan)

    def most_heard(self, keys: Any, syncs: np.ndarray) -> int:
        """The most clients that participate at one of `syncs`, over the seeds' `keys`."""
        return int(np.max(_heard(self.values.algorithm, keys, syncs, clients=self.plan.clients)))


def _stage(values: Values, plan: Plan, key: Any, drawn: Any) -> Stage:
    vectors = Flat(values.problem)
    return Stage(
        values.algorithm,
        vectors,
        values.sampler,
        key,
        drawn,
        Setting(plan.clients, plan.pending, vectors.gradient),
        plan.measure,
        values.weights,
        values.wires,
        plan.slots,
        plan.layout.spread,
        values.problem.block if jax.default_backend() == "cpu" else None,
    )


@functools.partial(jax.jit, static_argnames="plan")  # never run; an equal run is not traced again
def _message(values: Values, key: Any, plan: Plan) -> Any:
    return first_message(_stage(values, plan, None, None), key)


@functools.partial(jax.jit, static_argnames="plan")
def _begin(values: Values, key: Any, drawn: Any, plan: Plan) -> Any:
    def one(key: Any, drawn: Any) -> Any:
        return plan.path.begin(_stage(values, plan, key, drawn))

    return (jax.vmap(one) if plan.many else one)(key, drawn)


@functools.partial(jax.jit, static_argnames=("plan", "shape"), donate_argnames="state")
def _advance(
    values: Values, state: Any, key: Any, drawn: Any, feed: Feed, plan: Plan, shape: Shape
) -> Any:
    def one(state: Any, key: Any, drawn: Any, pieces: Any) -> Any:
        stage = _stage(values, plan, key, drawn)
        state, rows = plan.path.advance(stage, state, feed._replace(pieces=pieces), shape)
        return state, plan.layout.whole(gathered(rows))

    return (jax.vmap(one) if plan.many else one)(state, key, drawn, feed.pieces)


@functools.partial(jax.jit, static_argnames="plan")
def _models(values: Values, state: Any, plan: Plan) -> Any:
    def one(state: Any) -> Any:
        return plan.path.models(_stage(values, plan, None, None), state)

    return (jax.vmap(one) if plan.many else one)(state)


@functools.partial(jax.jit, static_argnames="clients")
def _heard(algorithm: Algorithm, keys: Any, syncs: Any, clients: int) -> Any:
    """The number of clients that participate at each of `syncs`, the maximum over the seeds' `keys`."""

    def one(t: Any) -> Any:
        heard = jax.vmap(lambda key: algorithm.participation.heard(key, t, clients))(keys)
        return jnp.max(jnp.sum(heard, axis=1))

    return jax.lax.map(one, syncs)


def gathered(rows: Row) -> Row:
    """The rows as they leave the program: the mean models of the steps are summed, and the clients' losses are
    reduced to those of the first step at which one is not finite (of the first step, if all are finite)."""
    first = jnp.argmin(jnp.isfinite(rows["loss"]))
    rows = {**rows, EACH_LOSS: rows[EACH_LOSS][first]}
    if "average" in rows:
        rows["average"] = rows["average"].sum(axis=0)
    return rows
