"""What is compiled: the path that a run takes, jitted, over one seed or many.

Programs are kept, so that a second run of the same values compiles nothing.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import Algorithm, Problem, Stream
from mainstem.engines.simulate import links, plain, rounds
from mainstem.engines.simulate.devices import Layout
from mainstem.engines.simulate.stage import Stage, meet
from mainstem.parts.network import Network


class Program(NamedTuple):
    """`begin(key)`, `advance(state, key, resident, pieces, first, how)` and `models(state)`.

    `how` is the stretch's shape on the fast path and its sync flags on the plain one.
    """

    begin: Any
    advance: Any
    models: Any  # state -> (the server's model, each client's)
    heard: Any  # (keys, syncs) -> how many are heard at each sync, at most
    stage: Stage


class Choice(NamedTuple):
    """All that a program depends on, so that it can be found again."""

    algorithm: Algorithm
    problem: Problem
    sample: Any
    expected: Any
    clients: int
    measure: tuple[str, ...]
    dtype: str
    many: bool
    layout: Layout
    wires: tuple[bytes, bytes] | None  # None: the fast path
    slots: tuple[int, int] = (1, 1)


def choose(
    algorithm: Algorithm,
    problem: Problem,
    stream: Stream,
    *,
    measure: tuple[str, ...],
    dtype: str,
    many: bool,
    layout: Layout,
    wires: Network,
    syncs: np.ndarray | None,
) -> Program:
    """The program for a run; `syncs` (all its sync steps) asks for the plain path."""
    known = Choice(
        algorithm._replace(spec=_NO_SPEC),
        problem._replace(spec=_NO_SPEC),
        stream.sample,
        stream.expected,
        stream.clients,
        measure,
        dtype,
        many,
        layout,
        None,
    )
    if syncs is not None:
        known = known._replace(
            wires=(wires.up.tobytes(), wires.down.tobytes()),
            slots=(links.depth(syncs, wires.up), links.depth(syncs, wires.down)),
        )
    return _compiled(known)


_NO_SPEC: Any = None


@functools.lru_cache(maxsize=64)
def _compiled(choice: Choice) -> Program:
    stream = Stream(choice.clients, None, (), None, choice.sample, None, choice.expected)  # type: ignore[arg-type]
    stage = meet(choice.algorithm, choice.problem, stream, choice.measure, choice.layout.spread)
    if choice.wires is None:
        return _fast(stage, choice)
    return _plain(stage, choice)


def _fast(stage: Stage, choice: Choice) -> Program:
    def advance(state: Any, key: Any, resident: Any, pieces: Any, first: Any, how: Any) -> Any:
        state, rows = rounds.advance(stage, state, key, resident, pieces, first, how)
        return state, choice.layout.whole(gathered(rows))

    def models(state: Any) -> Any:
        if rounds.shares(stage):
            return state.broadcast, None
        return _server_model(stage, state.server), jax.vmap(stage.algorithm.model)(state.clients)

    return Program(
        jax.jit(_over_seeds(choice, functools.partial(rounds.begin, stage))),
        jax.jit(_advance_over_seeds(choice, advance), static_argnums=5, donate_argnums=0),
        jax.jit(_over_seeds(choice, models)),
        jax.jit(functools.partial(_heard, stage)),
        stage,
    )


def _plain(stage: Stage, choice: Choice) -> Program:
    up, down = (np.frombuffer(data, np.int32) for data in choice.wires or ())
    wires = Network(up, down)

    def advance(state: Any, key: Any, resident: Any, pieces: Any, first: Any, how: Any) -> Any:
        state, rows = plain.advance(stage, wires, state, key, resident, pieces, first, how)
        return state, choice.layout.whole(gathered(rows))

    def models(state: Any) -> Any:
        return _server_model(stage, state.server), jax.vmap(stage.algorithm.model)(state.clients)

    return Program(
        jax.jit(_over_seeds(choice, lambda key: plain.begin(stage, choice.slots, key))),
        jax.jit(_advance_over_seeds(choice, advance), donate_argnums=0),
        jax.jit(_over_seeds(choice, models)),
        jax.jit(functools.partial(_heard, stage)),
        stage,
    )


def _heard(stage: Stage, keys: Any, syncs: Any) -> Any:
    """How many are heard at each of `syncs`, the most over the seeds' `keys`."""

    def one(t: Any) -> Any:
        heard = jax.vmap(lambda key: stage.algorithm.participation.heard(key, t, stage.clients))(
            keys
        )
        return jnp.max(jnp.sum(heard, axis=1))

    return jax.lax.map(one, syncs)


def gathered(rows: Any) -> Any:
    """The rows as they leave the program: a whole model a step is summed up."""
    if "average" in rows:
        rows = {**rows, "average": rows["average"].sum(axis=0)}
    return rows


def _server_model(stage: Stage, server: Any) -> Any:
    """The model that the server would broadcast now, without having heard anything new."""
    body = jax.eval_shape(stage.problem.init, jax.ShapeDtypeStruct((2,), np.uint32))
    quiet = stage.algorithm.collect.gather(
        jnp.zeros((1, body.size), body.dtype), jnp.zeros(1, body.dtype), stage.clients
    )
    return stage.algorithm.merge(server, quiet, stage.gradient, jnp.int32(1))[1]


def _over_seeds(choice: Choice, function: Any) -> Any:
    return jax.vmap(function) if choice.many else function


def _advance_over_seeds(choice: Choice, advance: Any) -> Any:
    """`advance` for every seed at once: state, key and pieces have the seeds' axis first."""
    if not choice.many:
        return advance

    def many(state: Any, key: Any, resident: Any, pieces: Any, first: Any, how: Any) -> Any:
        one = lambda state, key, pieces: advance(state, key, resident, pieces, first, how)  # noqa: E731
        return jax.vmap(one)(state, key, pieces)

    return many
