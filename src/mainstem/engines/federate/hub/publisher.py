"""Stores the hub's state, and then publishes the model: a restart loses neither."""

import asyncio
from collections.abc import Awaitable, Callable

from mainstem.engines.federate import faults
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.intake import Intake
from mainstem.engines.federate.hub.state_copy import StateCopy
from mainstem.engines.federate.protocol.chunking import split
from mainstem.engines.federate.protocol.messages import Broadcast, pack_broadcast
from mainstem.engines.federate.protocol.run_document import encode
from mainstem.engines.federate.transport.state_store import StateStore, StoredState

SENT = 2  # turns of the event loop after which nats-py has sent what it was given


class Publisher:
    """Sends with `send(subject, data)`, in messages of at most `most` bytes."""

    def __init__(
        self,
        aggregator: Aggregator,
        intake: Intake,
        store: StateStore,
        copy: StateCopy,
        send: Callable[[str, bytes], Awaitable[None]],
        most: int,
    ):
        self.stored = 1  # uploads before this sequence are merged, and the state is stored
        self._aggregator = aggregator
        self._subjects = aggregator.document.subjects
        self._intake = intake
        self._store = store
        self._copy = copy
        self._send = send
        self._most = most

    async def publish(self, document: bool = False) -> None:
        """Stores the state and publishes the model, after the run document if asked."""
        aggregator = self._aggregator
        sequence = self._intake.next_unmerged
        data = aggregator.snapshot(sequence, self._intake.unfinished)
        state = StoredState(aggregator.epoch, aggregator.version, data)
        faults.reach("hub before store")
        packing = asyncio.create_task(_packed(aggregator.broadcast()))
        await self._store.write(state)
        self.stored = sequence
        faults.reach("hub after store")
        self._copy.note(state.data)
        if document:
            await self._send(self._subjects.document, encode(aggregator.document))
        await self._send_model(self._subjects.broadcast, await packing)

    async def publish_candidate(self) -> None:
        """Publishes the present model for clients to compare themselves with."""
        candidate = pack_broadcast(self._aggregator.broadcast())
        await self._send_model(self._subjects.candidate, candidate)

    async def _send_model(self, subject: Callable[[int], str], data: bytes) -> None:
        """Sends a model, in chunks if it is large."""
        for n, chunk in enumerate(split(data, self._most, self._aggregator.version)):
            await self._send(subject(n), chunk)
            faults.reach("hub within broadcast")


async def _packed(broadcast: Broadcast) -> bytes:
    """An encoded broadcast. It is encoded while the server stores the state: not before that was sent."""
    for _ in range(SENT):
        await asyncio.sleep(0)
    return pack_broadcast(broadcast)
