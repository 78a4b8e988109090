"""A site as a Flower app. Flower keeps its state between two messages, and forgets it when the SuperNode ends."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from mainstem import replay
from mainstem.base import Sample, Stream
from mainstem.engines.federate import event_log
from mainstem.engines.federate.client.kernels import Kernels, shared_kernels
from mainstem.engines.federate.client.persistence import restored, stored
from mainstem.engines.federate.client.state import BLOCK, ClientState, Progress, block
from mainstem.engines.federate.protocol.messages import Broadcast, held_version, pack_upload
from mainstem.engines.federate.protocol.run_document import MAX_FIRST_SYNC, RunDocument, decode
from mainstem.errors import BrokenRun, MainstemError
from mainstem.streams.sample_format import SampleFormat

TABLE = "mainstem"  # the record of each message and of a site's state
Rows = Callable[[str, int], Iterable[Any]]


def client_app(rows: Rows | Stream) -> ClientApp:
    """The app of a site.

    `rows(client, after)` gives the samples (x, y) of the site with this name, after its first so many. A stream
    gives the samples of `ms.simulate` with the seed of the run.

    A node is the client that its configuration names: `--node-config 'client="berlin"'`. Without a name its
    `partition-id` is the place in the list of clients, as in Flower's simulations.
    """
    app = ClientApp()
    app.train()(functools.partial(_trained, rows))
    return app


def _trained(rows: Rows | Stream, message: Message, context: Context) -> Message:
    asked = message.content[TABLE]
    kernels = _kernels(asked["document"])
    document = kernels.document
    k = _place(document, context)
    state = ClientState(kernels, k)
    pending: dict[int, bytes] = {}
    if TABLE in context.state:
        pending = restored(state, context.state[TABLE]["state"], "the state that Flower kept")
    broadcast = document.read_broadcast(asked["broadcast"])
    oldest = broadcast.version - document.rules.staleness
    pending = {
        step: data
        for step, data in pending.items()
        if step > broadcast.received[k] and held_version(data) >= oldest
    }
    _take(state, broadcast)
    if len(pending) < (1 if document.lockstep else document.rules.pending):
        pending |= _learnt(state, rows)
    totals = state.totals()
    context.state[TABLE] = ConfigRecord({"state": stored(state, pending)})
    answer = ConfigRecord(
        {
            "client": document.clients[k],
            "uploads": list(pending.values()),
            "step": totals.step,
            "loss": totals.loss,
            "since": totals.since,
        }
    )
    return Message(RecordDict({TABLE: answer}), reply_to=message)


@functools.lru_cache(maxsize=4)
def _kernels(document: bytes) -> Kernels:
    return shared_kernels(decode(document, "the server app's run"), None)


def _place(document: RunDocument, context: Context) -> int:
    """The place of this node's site in the roster."""
    named, numbered = (context.node_config.get(name) for name in ("client", "partition-id"))
    if named in document.clients:
        return document.clients.index(str(named))
    if named is None and isinstance(numbered, int) and 0 <= numbered < len(document.clients):
        return numbered
    roster = ", ".join(document.clients)
    raise MainstemError(
        f"{document.rules.run}: node {context.node_id} is no client: its configuration has client = {named!r} and "
        f"partition-id = {numbered!r}, the clients are {roster}"
    )


def _take(state: ClientState, broadcast: Broadcast) -> None:
    """Takes the server's model, if it is a newer one."""
    received = int(broadcast.received[state.k])
    if received > state.step:
        who = f"client {state.document.clients[state.k]} is known up to sample {received}, and lost its state"
        if state.document.lockstep:
            raise BrokenRun(f'{who}: lockstep cannot go on, pace = "free" can')
        event_log.warning("state_lost", f"{who}: it continues from there")
        state.restore(state.client, Progress(step=received, since=received))
    if broadcast.epoch > state.progress.epoch:
        state.enter(broadcast)
    if broadcast.age > state.age:
        state.receive(broadcast)


def _learnt(state: ClientState, rows: Rows | Stream) -> dict[int, bytes]:
    """Learns up to the next sync, or as far as there are samples. Returns the upload, if there is one."""
    document = state.document
    end = document.rules.steps or state.step + MAX_FIRST_SYNC
    last = state.sync_steps.next(state.step, end) or end
    given = itertools.islice(_samples(state, rows, last), last - state.step)
    while found := list(itertools.islice(given, BLOCK)):
        stacked = jax.tree.map(lambda *each: np.stack(each), *found)
        room = 1 << (len(found) - 1).bit_length()
        state.learn_many(block(stacked, 0, len(found), room), len(found))
    if state.step < last or not state.sync_steps.after(last):
        return {}
    upload = state.make_upload()
    if state.failure is not None:
        event_log.warning("not_finite", str(state.failure))
        state.failure = None
    sends = document.lockstep or upload.body is not None
    return {upload.step: pack_upload(upload)} if sends else {}


def _samples(state: ClientState, rows: Rows | Stream, last: int) -> Iterator[Sample]:
    """The samples after those that it has learnt."""
    document, rules = state.document, state.document.rules
    if isinstance(rows, Stream):
        yield from replay.samples_at(rows, rules.seed, state.k, state.step + 1, last, rules.dtype)
        return
    form = SampleFormat(document.source, document.dtype, rules.features, rules.labels)
    for x, y in rows(document.clients[state.k], state.step):
        yield form.sample(x, y)
