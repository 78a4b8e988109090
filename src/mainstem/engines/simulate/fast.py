"""Fast path: computes whole rounds at once, for instant networks and periodic syncs.

A round is the steps up to and including a sync. Its rows are computed in one batched pass where that fits in
memory, and what a client learns is computed only where it can have an effect.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem import random, replay
from mainstem.base import SEVERAL, Arrivals, Collected, Faced, Pair
from mainstem.engines.run_context import (
    current_broadcast,
    downloaded,
    first_params,
    learnt_one,
)
from mainstem.engines.simulate.reference import learnt, uploaded
from mainstem.engines.simulate.stage import (
    Arrived,
    Feed,
    Row,
    Shape,
    Stage,
    arrive,
    blockwise,
    everyone,
    face,
    participants,
    present,
    written,
)

BATCH = 4096  # samples in one forward pass with shared weights
# Parameters touched in a step, below which an accelerator needs as long for a turn of a loop; and below which the
# models of all clients at many steps are few enough to be stored on it.
SMALL, FEW = 2**23, 2**17
# The same on a CPU, below which XLA compiles the learning of a step, without its rows, as one function; and below
# which it is quicker to compute the rows of many steps at once, where learning does not give them.
SMALL_ON_CPU, ROWS_APART = 2**7, 2**11
STORED = 4  # parameters of a model up to which those of all clients are always stored
SEVERAL_ROUNDS = 10
ROWS = (
    2**27
)  # parameters touched in one pass for the rows of many rounds: its outcomes must fit in memory
UNROLLED = 32  # the most steps of a round that are compiled without a loop on an accelerator


class Local(NamedTuple):
    """State of a run whose clients have models of their own."""

    server: Any
    clients: Any  # their states, or the fields that they carry
    merged: Any  # each client's newest step that the server has merged
    broadcast: Any  # the last broadcast, where it is needed; else None


class Shared(NamedTuple):
    """State of a run in which a client is a function of the last broadcast."""

    server: Any
    broadcast: Any


def shares(stage: Stage) -> bool:
    """Whether the clients need no state of their own."""
    traits = stage.algorithm.traits
    return traits.decides_with_broadcast and traits.forgets_unheard


def begin(stage: Stage) -> Local | Shared:
    """The state before step 1."""
    server, client_of = stage.algorithm.start(first_params(stage, stage.key), stage.setting)
    if shares(stage):
        return Shared(server, stage.algorithm.model(client_of(0)))
    ks = everyone(stage)
    wanted = stage.algorithm.collect.based or stage.algorithm.traits.carries is not None
    broadcast = current_broadcast(stage, server) if wanted else None
    clients = carried(stage, jax.vmap(client_of)(ks))
    return Local(server, clients, jnp.zeros_like(ks), broadcast)


def carried(stage: Stage, clients: Any) -> Any:
    """The fields that the clients carry from round to round."""
    names = stage.algorithm.traits.carries
    return clients if names is None else {name: getattr(clients, name) for name in names}


def clients_of(stage: Stage, state: Local) -> Any:
    """The clients' complete states: the fields that they carry, and the rest as after a download."""
    if stage.algorithm.traits.carries is None:
        return state.clients

    def one(k: Any, carries: Any) -> Any:
        return _fresh(stage, state.broadcast, k)._replace(**carries)

    return jax.vmap(one)(everyone(stage), state.clients)


def advance(stage: Stage, state: Any, feed: Feed, shape: Shape) -> tuple[Any, Row]:
    """Runs `shape.rounds` rounds from step `feed.first` on."""
    if shape.batched and (shape.sync or not shares(stage)):
        several = _shared_steps if shares(stage) else _local_steps
        return several(stage, state, feed.pieces, feed.first, shape)
    rounds, length = shape.rounds, shape.length
    split = jax.tree.map(lambda x: x.reshape(rounds, length, *x.shape[1:]), feed.pieces)
    starts = feed.first + length * jnp.arange(rounds, dtype=jnp.int32)
    whole = _shared_round if shares(stage) else _local_round

    def body(state: Any, given: Any) -> tuple[Any, Row]:
        start, piece = given
        return whole(stage, state, piece, start, shape)

    state, rows = jax.lax.scan(body, state, (starts, split), unroll=_at_once(stage, rounds))
    return state, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)


def stores_models(stage: Stage, rollouts: int) -> bool:
    """Whether the models of many steps are stored, and their rows computed at once."""
    touched = _touched(stage)
    if jax.default_backend() != "cpu" and shares(stage):
        return touched < SMALL
    if not shares(stage) and stage.problem.problem.parameters <= STORED:
        return True
    most = FEW
    if jax.default_backend() == "cpu":
        rows_given = stage.algorithm.participation.everyone and _fuses(stage)
        most = ROWS_APART if shares(stage) and not rows_given else SMALL_ON_CPU
    return rollouts * touched < most


def _touched(stage: Stage) -> int:
    return stage.clients * stage.problem.problem.parameters


def _at_once(stage: Stage, rounds: int) -> int:
    """The rounds in a turn of a loop over `rounds`: several if an accelerator takes about as long for the turn."""
    small = jax.default_backend() != "cpu" and _touched(stage) < SMALL
    return SEVERAL_ROUNDS if small and rounds % SEVERAL_ROUNDS == 0 else 1


def models(stage: Stage, state: Local | Shared) -> tuple[Any, Any]:
    """The server's model, and each client's unless it is the same."""
    if isinstance(state, Shared):
        each = None  # the same, unless it was encoded on its way
        if stage.algorithm.downlink is not None:
            each = jnp.broadcast_to(state.broadcast, (stage.clients, *state.broadcast.shape))
        return current_broadcast(stage, state.server), each
    each = jax.vmap(stage.algorithm.model)(clients_of(stage, state))
    return current_broadcast(stage, state.server), present(
        stage, jax.vmap(stage.problem.join)(each)
    )


# --- clients that are functions of the broadcast -------------------------------------------------


def _fresh(stage: Stage, broadcast: Any, k: Any) -> Any:
    """Client k right after a download."""
    params = broadcast
    if stage.algorithm.personal:
        own = stage.problem.split(stage.problem.init(jnp.zeros(2, jnp.uint32))).own
        params = Pair(broadcast, own)
    _, client_of = stage.algorithm.start(params, stage.setting)
    return stage.algorithm.download(
        client_of(k), broadcast, stage.gradient, jnp.int32(0), jnp.int32(0)
    )


class Known(NamedTuple):
    """What a round needs besides the state: it does not depend on any model."""

    steps: Any
    ks: Any  # the clients that may participate
    heard: Any  # whether each does
    pieces: Any  # of these clients, or their samples


def _shared_round(
    stage: Stage, state: Shared, pieces: Any, start: Any, shape: Shape
) -> tuple[Shared, Row]:
    steps = start + jnp.arange(shape.length, dtype=jnp.int32)
    if not shape.sync:
        rows = _forward(stage, state.broadcast, pieces, steps)
        return state, _counted(rows, shape.length, 0, 0)
    known = _known(stage, pieces, steps, shape)
    merged, uploads, faced = _merged(stage, state, known, shape)
    if faced is None or shape.cohort is not None:
        rows = _forward(stage, state.broadcast, pieces, steps)
    else:
        model = stage.algorithm.model(_fresh(stage, state.broadcast, 0))
        head = jax.tree.map(lambda x: x[0], pieces)
        row = written(stage, model[None], faced, steps[0], head)
        rows = jax.tree.map(lambda x: x[None], row)
    return merged, _counted(rows, shape.length, uploads, stage.clients)


def _shared_steps(
    stage: Stage, state: Shared, pieces: Any, first: Any, shape: Shape
) -> tuple[Shared, Row]:
    """Many rounds: computes first what needs no model, then the models in sequence, then all rows at once."""
    rounds, length = shape.rounds, shape.length
    steps = first + jnp.arange(rounds * length, dtype=jnp.int32).reshape(rounds, length)
    split = jax.tree.map(lambda x: x.reshape(rounds, length, *x.shape[1:]), pieces)

    def before(steps: Any, pieces: Any) -> Known:
        known = _known(stage, pieces, steps, shape)
        samples = jax.vmap(lambda t, piece: arrive(stage, piece, t, known.ks))(steps, known.pieces)
        return known._replace(pieces=Arrived(samples))

    def whole(state: Shared, known: Known) -> tuple[Shared, Any]:
        merged, uploads, _ = _merged(stage, state, known, shape)
        return merged, (state.broadcast, uploads)

    known = jax.vmap(before)(steps, split)
    unroll = _at_once(stage, rounds)
    state, (models, uploads) = jax.lax.scan(whole, state, known, unroll=unroll)
    at_once = max(1, ROWS // (stage.clients * stage.problem.problem.parameters))
    rows = jax.lax.map(
        lambda given: _forward(stage, *given),
        (models, split, steps),
        batch_size=min(rounds, at_once),
    )
    rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
    return state, _counted(rows, length, uploads, jnp.full(rounds, stage.clients))


def _known(stage: Stage, pieces: Any, steps: Any, shape: Shape) -> Known:
    """Who participates in a round, and their pieces."""
    return Known(steps, *_cohort(stage, participants(stage, steps[-1]), pieces, shape.cohort))


def _merged(
    stage: Stage, state: Shared, known: Known, shape: Shape
) -> tuple[Shared, Any, Faced | None]:
    """The state after a round, the number of uploads, and the outcomes where the gradients give them."""
    steps, ks, heard, pieces = known
    faced = None
    if _fuses(stage) and shape.length == 1:
        collected, faced = _gradients(stage, state.broadcast, pieces, steps[-1], ks, heard)
    else:
        collected = _messages(stage, state.broadcast, pieces, steps, ks, heard)
    server, broadcast = stage.algorithm.merge(state.server, collected, stage.gradient, steps[-1])
    broadcast = downloaded(stage, broadcast, stage.key, steps[-1])
    return Shared(server, broadcast), collected.count, faced


def _cohort(stage: Stage, heard: Any, pieces: Any, room: int | None) -> tuple[Any, Any, Any]:
    """The participating clients and their pieces; places left over hold a client marked as not participating."""
    if room is None:
        return everyone(stage), heard, pieces
    found = jnp.nonzero(heard, size=room, fill_value=stage.clients)[0]
    ks = jnp.minimum(found, stage.clients - 1)
    return ks, found < stage.clients, jax.tree.map(lambda x: x[:, ks], pieces)


def _forward(stage: Stage, broadcast: Any, pieces: Any, steps: Any) -> Row:
    """The rows of a round: every client decides with the same model."""
    length = len(steps)
    model = stage.algorithm.model(_fresh(stage, broadcast, 0))
    ks = everyone(stage)

    def one(t: Any, piece: Any) -> Row:
        def some(piece: Any, k: Any) -> Any:
            samples = arrive(stage, piece, t, k)
            return face(stage, model, samples, t, k, shared=True)

        faced = blockwise(stage, some, piece, ks)
        return written(stage, model[None], faced, t, piece)

    at_once = max(
        n for n in range(1, length + 1) if (length % n == 0 and n * len(ks) <= BATCH) or n == 1
    )
    blocks = jax.tree.map(lambda x: x.reshape(-1, at_once, *x.shape[1:]), (steps, pieces))
    rows = jax.lax.map(lambda block: jax.vmap(one)(*block), blocks)
    return jax.tree.map(lambda x: x.reshape(length, *x.shape[2:]), rows)


def _fuses(stage: Stage) -> bool:
    """Whether the sum of messages is the gradient of a sum, so that no message need be formed."""
    algorithm = stage.algorithm
    linear = algorithm.codec.linear and algorithm.collect.additive
    return algorithm.traits.sends_gradient_at_broadcast and linear


def _gradients(
    stage: Stage, broadcast: Any, pieces: Any, t: Any, k: Any, heard: Any
) -> tuple[Any, Faced]:
    """What the server collects, as one batched gradient, and the outcomes of these clients' decisions."""
    model = stage.algorithm.model(_fresh(stage, broadcast, 0))

    def some(piece: Any, k: Any, heard: Any) -> Any:
        clients = jax.vmap(lambda each: _fresh(stage, broadcast, each))(k)
        _, _, weights = uploaded(stage, clients, heard, t, k)
        samples = arrive(stage, piece, t, k)

        def weighted(params: Any) -> Any:
            faced = face(stage, params, samples, t, k, shared=True)
            losses = jnp.where(weights > 0, faced.loss, 0)
            if jax.default_backend() != "cpu":  # a product with one column is slow there
                return jnp.sum(weights * losses), faced
            return weights @ losses, faced

        total, faced = stage.problem.slope(weighted, model)
        return total[None], weights, faced

    head = jax.tree.map(lambda x: x[0], pieces)
    totals, weights, faced = blockwise(stage, some, head, k, heard)
    uploads = jnp.sum(weights > 0, dtype=jnp.int32)
    return Collected(jnp.sum(totals, axis=0), jnp.sum(weights), uploads, stage.clients), faced


def _messages(
    stage: Stage,
    broadcast: Any,
    pieces: Any,
    steps: Any,
    k: Any,
    heard: Any,
) -> Any:
    """What the server collects from the messages of the clients `k`."""
    model = stage.algorithm.model(_fresh(stage, broadcast, 0))

    def some(pieces: Any, k: Any, heard: Any) -> Any:
        def faced(t: Any, piece: Any) -> Faced:
            samples = arrive(stage, piece, t, k)
            return face(stage, model, samples, t, k, shared=True)

        def one(clients: Any, given: Any) -> tuple[Any, None]:
            t, piece = given
            return learnt(stage, clients, faced(t, piece), t, k), None

        pieces = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), pieces)  # the step axis first
        head, rest = jax.tree.map(lambda x: x[0], pieces), jax.tree.map(lambda x: x[1:], pieces)
        clients = _first_learnt(stage, broadcast, faced(steps[0], head), steps[0], k)
        if len(steps) > 1:
            clients, _ = jax.lax.scan(one, clients, (steps[1:], rest))
        return uploaded(stage, clients, heard, steps[-1], k)[1:]

    by_client = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), pieces)
    bodies, weights = blockwise(stage, some, by_client, k, heard)
    base = jnp.broadcast_to(broadcast, (len(k), broadcast.size))
    got = Arrivals(bodies, weights, k, jnp.broadcast_to(steps[-1], k.shape), base)
    return stage.algorithm.collect.gather(got, stage.clients)


def _first_learnt(stage: Stage, broadcast: Any, faced: Faced, t: Any, k: Any) -> Any:
    """The clients after the first step of a round, computed from one model: its products are shared."""
    at = replay.at_all(stage.key, random.LEARN, t, k)

    def one(k: Any, seen: Any, informative: Any, at: Any) -> Any:
        return learnt_one(stage, _fresh(stage, broadcast, k), seen, informative, at)

    return jax.vmap(one, in_axes=(0, 0, 0, SEVERAL))(k, faced.seen, faced.informative, at)


# --- clients with models of their own ------------------------------------------------------------


def _local_round(
    stage: Stage, state: Local, pieces: Any, start: Any, shape: Shape
) -> tuple[Local, Row]:
    """A round whose rows are recorded step by step: for models too large to be stored for later."""
    ks = everyone(stage)

    def one(clients: Any, given: Any) -> tuple[Any, Row]:
        t, piece = given
        samples = arrive(stage, piece, t, ks)
        models = jax.vmap(stage.algorithm.model)(clients)
        faced = face(stage, models, samples, t, ks, shared=False)
        row = written(stage, models, faced, t, piece)
        return learnt(stage, clients, faced, t, ks), row

    steps = start + jnp.arange(shape.length, dtype=jnp.int32)
    clients, rows = _scan(one, clients_of(stage, state), (steps, pieces), shape.length)
    state, uploads, downloads = _exchanged(stage, state._replace(clients=clients), steps[-1], shape)
    return state, _counted(rows, shape.length, uploads, downloads)


def _local_steps(
    stage: Stage, state: Local, pieces: Any, first: Any, shape: Shape
) -> tuple[Local, Row]:
    """Many rounds: computes all samples first, then only the learning in sequence, then all rows at once."""
    ks = everyone(stage)
    count = shape.rounds * shape.length
    steps = first + jnp.arange(count, dtype=jnp.int32)
    samples = jax.vmap(lambda t, piece: arrive(stage, piece, t, ks))(steps, pieces)
    split = jax.tree.map(
        lambda x: x.reshape(shape.rounds, shape.length, *x.shape[1:]), (steps, samples)
    )

    def one(clients: Any, given: Any) -> tuple[Any, Any]:
        t, sample = given
        models = jax.vmap(stage.algorithm.model)(clients)
        faced = face(stage, models, sample, t, ks, shared=False)
        return learnt(stage, clients, faced, t, ks), models

    def whole(state: Local, given: Any) -> tuple[Local, Any]:
        steps, _ = given
        clients, models = _scan(one, clients_of(stage, state), given, shape.length)
        state, uploads, downloads = _exchanged(
            stage, state._replace(clients=clients), steps[-1], shape
        )
        return state, (models, uploads, downloads)

    state, (models, uploads, downloads) = jax.lax.scan(whole, state, split)

    def after(t: Any, sample: Any, models: Any, piece: Any) -> Row:
        faced = face(stage, models, sample, t, ks, shared=False)
        return written(stage, models, faced, t, piece)

    models = jax.tree.map(lambda x: x.reshape(count, *x.shape[2:]), models)
    rows = jax.vmap(after)(steps, samples, models, pieces)
    return state, _counted(rows, shape.length, uploads, downloads)


def _exchanged(stage: Stage, state: Local, t: Any, shape: Shape) -> tuple[Local, Any, Any]:
    """The sync at the end of a round, over links without delay."""
    if not shape.sync:
        return state._replace(clients=carried(stage, state.clients)), jnp.int32(0), jnp.int32(0)
    algorithm, ks = stage.algorithm, everyone(stage)
    heard = participants(stage, t)
    clients, bodies, weights = uploaded(stage, state.clients, heard, t, ks)
    base = None
    if algorithm.collect.based:
        base = jnp.broadcast_to(state.broadcast, (len(ks), state.broadcast.size))
    got = Arrivals(bodies, weights, ks, jnp.broadcast_to(t, ks.shape), base)
    collected = algorithm.collect.gather(got, stage.clients)
    server, broadcast = algorithm.merge(state.server, collected, stage.gradient, t)
    broadcast = downloaded(stage, broadcast, stage.key, t)
    merged = jnp.where(weights > 0, t, state.merged)
    clients = jax.vmap(
        lambda client, merged: algorithm.download(client, broadcast, stage.gradient, merged, t)
    )(clients, merged)
    uploads = jnp.sum(weights > 0, dtype=jnp.int32)
    held = None if state.broadcast is None else broadcast
    state = Local(server, carried(stage, clients), merged, held)
    return state, uploads, jnp.int32(stage.clients)


# --- shared by both ------------------------------------------------------------------------------


def _scan(body: Any, carry: Any, given: Any, length: int) -> Any:
    """A scan, without the loop if there is a single step. On an accelerator the steps of a short round become one
    kernel, where each turn of a loop would be several."""
    if length > 1:
        return jax.lax.scan(body, carry, given, unroll=length if _unrolls(length) else 1)
    carry, out = body(carry, jax.tree.map(lambda x: x[0], given))
    return carry, jax.tree.map(lambda x: x[None], out)


def _unrolls(length: int) -> bool:
    return length <= UNROLLED and jax.default_backend() != "cpu"


def _counted(rows: Row, length: int, uploads: Any, downloads: Any) -> Row:
    """The rows with the numbers of clients that uploaded and that received, at the last step of each round."""
    last = jnp.arange(rows["loss"].shape[0]) % length == length - 1

    def placed(count: Any) -> jax.Array:
        each = jnp.repeat(jnp.ravel(jnp.asarray(count, jnp.int32)), length)
        return jnp.where(last, each, 0)

    return {**rows, "uploads": placed(uploads), "downloads": placed(downloads)}
