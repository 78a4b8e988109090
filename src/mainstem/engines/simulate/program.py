"""What is compiled: the path that a run takes, jitted, over one seed or many.

Programs are kept, so that a second run of the same values compiles nothing.
"""

import functools
import threading
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import Algorithm, Problem, Setting, Stream, flat, sampled
from mainstem.engines.meeting import body, said_now
from mainstem.engines.simulate import links, plain, rounds
from mainstem.engines.simulate.devices import Layout
from mainstem.engines.simulate.stage import Stage
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
    sent: int  # numbers in a message


class Once:
    """A jitted function whose last argument is static: compiled once, even if two threads ask."""

    def __init__(self, jitted: Any):
        self.jitted = jitted
        self._known: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        *given, how = arguments
        leaves = [(jnp.shape(x), jnp.result_type(x)) for x in jax.tree.leaves(given)]
        asked = how, tuple(leaves)
        with self._lock:
            if asked not in self._known:
                self._known[asked] = self.jitted.lower(*arguments).compile()
        return self._known[asked](*given)


class Choice(NamedTuple):
    """All that a program depends on, so that it can be found again."""

    algorithm: Algorithm
    problem: Problem
    sample: Any  # the stream's, as are the next three
    expected: Any
    minimiser: Any
    drawn: bool  # whether it draws something for the whole run
    clients: int
    measure: tuple[str, ...]
    weights: bytes | None
    dtype: str
    many: bool
    layout: Layout
    wires: tuple[bytes, bytes] | None  # None: the fast path
    slots: tuple[int, int] = (1, 1)
    pending: int = 1


def choose(
    algorithm: Algorithm,
    problem: Problem,
    stream: Stream,
    *,
    measure: tuple[str, ...],
    weights: np.ndarray | None,
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
        stream.minimiser,
        stream.drawn is not None,
        stream.clients,
        measure,
        None if weights is None else weights.tobytes(),
        dtype,
        many,
        layout,
        None,
    )
    if syncs is not None:
        known = known._replace(
            wires=(wires.up.tobytes(), wires.down.tobytes()),
            slots=(links.depth(syncs, wires.up), links.depth(syncs, wires.down)),
            pending=links.round_trip(syncs, wires),
        )
    return _compiled(known)


_NO_SPEC: Any = None


@functools.lru_cache(maxsize=64)
def _compiled(choice: Choice) -> Program:
    vectors = flat(choice.problem)
    stage = Stage(
        choice.algorithm,
        vectors,
        vectors.gradient,
        sampled(choice.sample, choice.drawn),
        choice.expected,
        choice.minimiser,
        Setting(choice.clients, choice.pending, vectors.gradient),
        choice.measure,
        None if choice.weights is None else np.frombuffer(choice.weights),
        choice.layout.spread,
        choice.problem.block if jax.default_backend() == "cpu" else None,
    )
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
        return _models(stage, state.server, rounds.clients_of(stage, state))

    return Program(
        jax.jit(_over_seeds(choice, functools.partial(rounds.begin, stage))),
        Once(jax.jit(_advance_over_seeds(choice, advance), static_argnums=5, donate_argnums=0)),
        jax.jit(_over_seeds(choice, models)),
        jax.jit(functools.partial(_heard, stage)),
        stage,
        body(stage).size,
    )


def _plain(stage: Stage, choice: Choice) -> Program:
    up, down = (np.frombuffer(data, np.int32) for data in choice.wires or ())
    wires = Network(up, down)

    def advance(state: Any, key: Any, resident: Any, pieces: Any, first: Any, how: Any) -> Any:
        state, rows = plain.advance(stage, wires, state, key, resident, pieces, first, how)
        return state, choice.layout.whole(gathered(rows))

    return Program(
        jax.jit(_over_seeds(choice, lambda key: plain.begin(stage, choice.slots, key))),
        jax.jit(_advance_over_seeds(choice, advance), donate_argnums=0),
        jax.jit(_over_seeds(choice, lambda state: _models(stage, state.server, state.clients))),
        jax.jit(functools.partial(_heard, stage)),
        stage,
        body(stage).size,
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


def _models(stage: Stage, server: Any, clients: Any) -> Any:
    """(the server's model, each client's): of a personal problem the server knows no own part."""
    models = jax.vmap(stage.algorithm.model)(clients)
    return said_now(stage, server), jax.vmap(stage.problem.join)(models)


def _over_seeds(choice: Choice, function: Any) -> Any:
    return jax.vmap(function) if choice.many else function


def _advance_over_seeds(choice: Choice, advance: Any) -> Any:
    """`advance` for every seed at once: state, key and pieces have the seeds' axis first."""
    if not choice.many:
        return advance

    def many(state: Any, key: Any, resident: Any, pieces: Any, first: Any, how: Any) -> Any:
        def one(state: Any, key: Any, resident: Any, pieces: Any) -> Any:
            return advance(state, key, resident, pieces, first, how)

        known = (None, 0) if choice.drawn else None  # what is drawn is another for every seed
        return jax.vmap(one, in_axes=(0, 0, known, 0))(state, key, resident, pieces)

    return many
