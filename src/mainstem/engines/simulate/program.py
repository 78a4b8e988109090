"""Compiled programs: the functions of a run on its path, over one seed or many.

The values of a run (algorithm, problem, stream) are arguments of the compiled functions: their numbers are
traced, so that another step size uses the same program, and JAX's own cache finds it again.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import Algorithm, Flat, Problem, Sampler, Setting
from mainstem.engines.run_context import KEY, first_message
from mainstem.engines.simulate.devices import Layout
from mainstem.engines.simulate.stage import BAD_STEP, EACH_LOSS, Feed, Row, Shape, Stage
from mainstem.parts import network

# XLA divides an operation among the cores if it may read much, as the choice of a few rows of a large table. To
# start and to await the threads takes 6 us each time: if a step touches few parameters, one thread is faster.
SMALL = 2**20
SERIAL = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}


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
    # Which leaves of the values have an axis for several configurations; None: there is one configuration.
    varied: tuple[bool, ...] | None = None


class Program:
    """The compiled functions of a run, or of several configurations of one."""

    def __init__(self, values: Values, plan: Plan):
        self.values, self.plan = values, plan
        self._known: set[Shape] = set()
        self._lock = threading.Lock()

    def part(self, number: int, count: int) -> "Program":
        """The program for one of `count` equal parts of the configurations."""

        def cut(x: Any) -> Any:
            size = len(x) // count
            return x[number * size : (number + 1) * size]

        part = Program(_varied(cut, self.values, self.plan.varied), self.plan)
        part._known, part._lock = self._known, self._lock  # they share what is compiled
        return part

    @property
    def _first(self) -> Values:
        """The values of the first configuration."""
        return _varied(lambda x: x[0], self.values, self.plan.varied)

    @property
    def stage(self) -> Stage:
        """The run's stage, uncompiled, without key and draws; that of the first configuration."""
        return _stage(self._first, self.plan, None, None)

    @property
    def sent(self) -> int:
        """The number of entries of a message."""
        return int(jax.eval_shape(_message, self._first, KEY, self.plan).size)

    def begin(self, key: Any, drawn: Any) -> Any:
        """The state before step 1, for each configuration and key."""
        return _begin(self.values, key, drawn, plan=self.plan)

    def advance(self, state: Any, key: Any, drawn: Any, feed: Feed, shape: Shape) -> Any:
        """The state after a chunk, and its rows. Two threads that ask for one shape compile it once."""
        given = self.values, state, key, drawn, feed
        compiled = _advance_serially if self._serial else _advance
        if shape in self._known:
            return compiled(*given, plan=self.plan, shape=shape)
        with self._lock:
            done = compiled(*given, plan=self.plan, shape=shape)
            self._known.add(shape)
        return done

    @functools.cached_property
    def _serial(self) -> bool:
        """Whether each operation of a step is computed in one thread of a CPU."""
        touched = self.plan.clients * self._first.problem.parameters
        return bool(jax.default_backend() == "cpu" and touched < SMALL)

    def models(self, state: Any) -> Any:
        """The server's model and each client's."""
        return _models(self.values, state, plan=self.plan)

    def most_heard(self, keys: Any, syncs: np.ndarray) -> int:
        """The most clients that participate at one of `syncs`, over the configurations and the seeds' `keys`."""
        return int(np.max(_heard(self.values, keys, syncs, plan=self.plan)))


def _varied(
    change: Callable[[Any], Any], values: Values, varied: tuple[bool, ...] | None
) -> Values:
    """The values with those leaves changed that have an axis for configurations."""
    if varied is None:
        return values
    leaves, tree = jax.tree.flatten(values)
    changed = [change(x) if it else x for x, it in zip(leaves, varied, strict=True)]
    return jax.tree.unflatten(tree, changed)


def _each(one: Callable[..., Any], values: Values, plan: Plan, states: Any, given: Any) -> Any:
    """`one(values, states, given)` for each configuration and seed: `given` has an axis for the seeds, and
    so have the states, behind one for the configurations."""
    if plan.many:
        one = jax.vmap(one, in_axes=(None, 0, 0))
    if plan.varied is None:
        return one(values, states, given)
    leaves, tree = jax.tree.flatten(values)
    moving = [x for x, it in zip(leaves, plan.varied, strict=True) if it]

    def of_configuration(moved: list[Any], states: Any) -> Any:
        rest = iter(moved)
        whole = [next(rest) if it else x for x, it in zip(leaves, plan.varied or (), strict=True)]
        return one(jax.tree.unflatten(tree, whole), states, given)

    return jax.vmap(of_configuration)(moving, states)


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
        plan.layout,
        values.problem.block if jax.default_backend() == "cpu" else None,
    )


@functools.partial(jax.jit, static_argnames="plan")  # never run; an equal run is not traced again
def _message(values: Values, key: Any, plan: Plan) -> Any:
    return first_message(_stage(values, plan, None, None), key)


@functools.partial(jax.jit, static_argnames="plan")
def _begin(values: Values, key: Any, drawn: Any, plan: Plan) -> Any:
    def one(values: Values, state: Any, given: Any) -> Any:
        return plan.path.begin(_stage(values, plan, *given))

    return _each(one, values, plan, (), (key, drawn))


def _advanced(
    values: Values, state: Any, key: Any, drawn: Any, feed: Feed, plan: Plan, shape: Shape
) -> Any:
    def one(values: Values, state: Any, given: Any) -> Any:
        key, drawn, pieces = given
        stage = _stage(values, plan, key, drawn)
        state, rows = plan.path.advance(stage, state, feed._replace(pieces=pieces), shape)
        return state, gathered(rows)

    state, rows = _each(one, values, plan, state, (key, drawn, feed.pieces))
    if plan.varied is not None and plan.many:  # one axis for all rollouts
        rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
    return state, plan.layout.whole(rows)


_compiled = functools.partial(
    jax.jit, _advanced, static_argnames=("plan", "shape"), donate_argnames="state"
)
_advance = _compiled()
_advance_serially = _compiled(compiler_options=SERIAL)


@functools.partial(jax.jit, static_argnames="plan")
def _models(values: Values, state: Any, plan: Plan) -> Any:
    def one(values: Values, state: Any, given: Any) -> Any:
        return plan.path.models(_stage(values, plan, None, None), state)

    models = _each(one, values, plan, state, ())
    if plan.varied is not None and plan.many:
        models = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), models)
    return plan.layout.whole(models)


@functools.partial(jax.jit, static_argnames="plan", compiler_options=SERIAL)
def _heard(values: Values, keys: Any, syncs: Any, plan: Plan) -> Any:
    """The number of clients that participate at each of `syncs`, the maximum over the seeds' `keys`."""

    def one(values: Values, state: Any, given: Any) -> Any:
        heard = values.algorithm.participation.heard

        def most(t: Any) -> Any:
            return jnp.max(jnp.sum(jax.vmap(lambda key: heard(key, t, plan.clients))(keys), axis=1))

        return jax.lax.map(most, syncs)

    return _each(one, values, plan._replace(many=False), (), ())


def gathered(rows: Row) -> Row:
    """The rows as they leave the program: the mean models of the steps are summed, the clients' losses are
    reduced to those of the first step whose mean is not finite (of the first step, if all are), and `BAD_STEP`
    is its index, -1 if those losses are finite."""
    first = jnp.argmin(jnp.isfinite(rows["loss"]))
    losses = rows[EACH_LOSS][first]
    bad = jnp.where(jnp.isfinite(losses).all(), -1, first).astype(jnp.int32)
    rows = {**rows, EACH_LOSS: losses, BAD_STEP: bad}
    if "average" in rows:
        rows["average"] = rows["average"].sum(axis=0)
    return rows
