"""Serves a run: reads uploads, runs rounds (merge, store, broadcast), answers commands, publishes the status.

The upload stream is a log. The stored state names the sequence to read from. After a restart the hub reads from
there, and skips an upload whose step is not newer than its client's received step. So each upload is merged once.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, DeliverPolicy

from mainstem.engines.federate import faults
from mainstem.engines.federate.hub.aggregator import HARMLESS, Aggregator
from mainstem.engines.federate.hub.guard_report import GuardReport
from mainstem.engines.federate.hub.merge_log import MergeLog
from mainstem.engines.federate.hub.presence import PRESENT, Presence
from mainstem.engines.federate.protocol.candidate import Compared, against, read_compared
from mainstem.engines.federate.protocol.chunking import Reassembler, split
from mainstem.engines.federate.protocol.messages import (
    GOODBYE,
    HEADROOM,
    Reason,
    Refused,
    pack_broadcast,
    pack_heartbeat,
)
from mainstem.engines.federate.protocol.run_document import RunDocument, encode
from mainstem.engines.federate.transport.retry import GivenUp, retry
from mainstem.engines.federate.transport.state_store import StateStore
from mainstem.engines.federate.transport.streams import create_streams, stored_broadcasts
from mainstem.engines.federate.transport.tasks import log

HEARTBEAT = 1.0  # seconds between two heartbeats of the hub
UPKEEP = 1.0  # seconds between two purges of merged uploads, and between two status reports
STOP_TIMEOUT = 5.0  # seconds for which a hub that is asked to stop waits for the server
LATE = 1.0  # seconds after a round's first upload
CONSUMER_HEARTBEAT = 1.0  # seconds; the upload consumer is created anew if two are missed


class Hub:
    """Serves one run on a connection."""

    def __init__(
        self,
        document: RunDocument,
        connection: Client,
        replicas: int = 1,
        folder: Path | None = None,
    ):
        self.document = document
        self.aggregator = Aggregator(document)
        self.subjects = document.subjects
        self._connection = connection
        self._js: JetStreamContext = connection.jetstream(timeout=10)
        self._replicas = replicas
        self._max_message = connection.max_payload - HEADROOM
        limit = self.aggregator.most_bytes
        self._reassemblers = {name: Reassembler(limit) for name in document.clients}
        self._begun: dict[str, int] = {}  # sequence of the first chunk of an unfinished upload
        self._next = 1  # sequence of the next upload in the stream
        self._stored = 1  # uploads before this sequence are merged, and the state is stored
        self._changed = asyncio.Event()  # a merge may be due
        self._first: float | None = None  # when the first waiting upload came
        self._counting = False  # whether the round waits for its deadline
        self._paused = False
        self._finished = False
        self.stopped = False
        self._stop_time: float | None = None
        self._connected = True
        self._presence = Presence()
        self._compared: dict[
            str, Compared
        ] = {}  # latest comparison of each client with a candidate
        self._folder = folder
        self._merge_log: MergeLog | None = None
        self._started = time.monotonic()
        self._rounds = 0  # since this process started

    # --- opening -----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Creates or finds the run's streams, restores the stored state and broadcasts the model."""
        aggregator, subjects = self.aggregator, self.subjects
        chunks = -(-aggregator.most_bytes // self._max_message)
        await create_streams(self._js, self.document, chunks, self._replicas)
        self._store = await StateStore.open(
            self._js, subjects.bucket, self._max_message, self._replicas, self._gives_up
        )
        data = await self._store.read()
        if data is None:
            await self._store.write(aggregator.snapshot(self._next))
        else:
            self._next = aggregator.restore(data)
            if self.document.algorithm.collect.based:
                async for broadcast in stored_broadcasts(self._js, self.document):
                    aggregator.add_base(broadcast)
        self._guard_report = GuardReport(
            self.document.rules.run, self.document.clients, aggregator.stopped()
        )
        if self._folder is not None:
            self._merge_log = MergeLog(self._folder / "merges.jsonl", aggregator.version)
        await self._js.publish(subjects.document, encode(self.document))
        await self._publish_model(subjects.broadcast)
        await self._consume_uploads()
        await self._connection.subscribe(subjects.control, cb=self._on_command)
        await self._connection.subscribe(subjects.heartbeat("*"), cb=self._on_heartbeat)
        await self._publish_status()

    async def _consume_uploads(self) -> None:
        """Reads the upload stream from the first upload that may not be merged."""
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=max(1, self._next)
        )
        await self._js.subscribe(
            self.subjects.upload("*"),
            stream=self.subjects.upload_stream,
            config=config,
            ordered_consumer=True,
            idle_heartbeat=CONSUMER_HEARTBEAT,
            pending_bytes_limit=0,  # no limit: nats-py would drop messages without an error
            cb=self._on_upload,
        )

    # --- messages ----------------------------------------------------------------------------------

    async def _on_upload(self, message: Msg) -> None:
        sequence = message.metadata.sequence.stream
        self._next = max(self._next, sequence + 1)
        client = message.subject.rpartition(".")[2]
        if client not in self._reassemblers:
            return
        self._presence.uploaded(client)
        begun = self._begun.setdefault(client, sequence)
        try:
            data = self._reassembled(client, message.data)
            if data is None:
                return
            self._begun.pop(client)
            self.aggregator.accept(client, data, begun)
        except Refused as refusal:
            self._begun.pop(client, None)
            await self._notify(client, refusal)
            if self._is_complete():  # a client that is quarantined now is no longer expected
                self._changed.set()
            return
        self._first = self._first or time.monotonic()
        if self._is_complete() or (not self._counting and self._time_left() is not None):
            self._changed.set()

    async def _on_heartbeat(self, message: Msg) -> None:
        client = message.subject.rpartition(".")[2]
        if client not in self._reassemblers:
            return
        if message.data == GOODBYE:
            self._presence.left(client)
            if self._is_complete():  # it is no longer expected
                self._changed.set()
            return
        self._presence.came(client)
        with contextlib.suppress(ValueError, TypeError):
            if message.data:
                self._compared[client] = read_compared(message.data)

    def _reassembled(self, client: str, data: bytes) -> bytes | None:
        try:
            return self._reassemblers[client].add(data)
        except Refused as refusal:
            self.aggregator.refuse(self.aggregator.indices[client], refusal.reason)
            raise

    async def _notify(self, client: str, refusal: Refused) -> None:
        """Sends a refusal to its client, if an honest client can cause it."""
        if refusal.reason in HARMLESS or refusal.reason is Reason.VERSION:
            notice = json.dumps({"reason": refusal.reason, "message": str(refusal)})
            with contextlib.suppress(nats.errors.Error):
                await self._connection.publish(self.subjects.refusals(client), notice.encode())

    async def _on_command(self, message: Msg) -> None:
        """Executes pause, resume, finish or candidate, and answers with the status."""
        command, refused = message.data.decode(errors="replace"), None
        if command == "pause":
            self._paused = True
        elif command == "resume":
            self._paused = False
        elif command == "finish":
            self._finished = True
        elif command != "candidate":
            refused = f"there is no command {command!r}"
        elif self.document.algorithm.personal:
            refused = "a candidate must be a whole model, and the hub has the shared part only"
        else:
            await self._publish_model(self.subjects.candidate)
        self._changed.set()
        answer = self.status() if refused is None else {"refused": refused}
        await message.respond(json.dumps(answer).encode())

    # --- rounds ------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Runs rounds until the run is finished or `stop` is called. A failed background task ends it too."""
        background = asyncio.gather(self._keep_up(), self._send_heartbeats())
        background.add_done_callback(lambda _: self._changed.set())
        try:
            while not self.finished and not self.stopped and not background.done():
                if await self._merge_is_due():
                    await self._round()
            if background.done():
                await background  # raises its error
            await retry(self._publish_status, self._gives_up)
        except GivenUp:
            log.warning(
                "%s: ended while the NATS server did not answer; what it has not stored is merged again later",
                self.document.rules.run,
            )
        finally:
            background.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await background
            if self._merge_log is not None:
                self._merge_log.close()

    def stop(self) -> None:
        """Ends `serve` after the current round.

        Cancelling it would not be safe: within nats-py, `asyncio.wait_for` of Python 3.11 can lose a cancellation.
        """
        self.stopped = True
        self._stop_time = self._stop_time or time.monotonic()
        self._changed.set()

    def _gives_up(self) -> bool:
        """Whether it was asked to stop some time ago: then it no longer waits for the server."""
        return self._stop_time is not None and time.monotonic() - self._stop_time > STOP_TIMEOUT

    @property
    def finished(self) -> bool:
        """Whether the run has ended."""
        ended = self.document.lockstep and self.document.rules.steps and self.aggregator.due == 0
        return self._finished or bool(ended)

    async def _merge_is_due(self) -> bool:
        """Waits until all expected uploads are in, or the deadline passes with a quorum, or something changes."""
        if self._is_complete() and not self._paused:
            return True
        self._changed.clear()
        left = self._time_left()
        self._counting = left is not None
        if left is None:
            await self._changed.wait()
            return self._is_complete() and not self._paused
        try:
            async with asyncio.timeout(left):
                await self._changed.wait()
        except TimeoutError:
            return self.aggregator.has_quorum() and not self._paused
        return self._is_complete() and not self._paused

    def _is_complete(self) -> bool:
        """Whether all expected uploads are in. At the free pace, nothing is expected of clients that are lost."""
        if self.document.lockstep:
            return self.aggregator.is_complete()
        absent = self._presence.absent(self.aggregator.indices)
        return self.aggregator.is_complete(absent)

    def _time_left(self) -> float | None:
        """Seconds until the deadline of the current round."""
        if self.document.rules.deadline is None or self._first is None or self._paused:
            return None
        if not self.aggregator.has_quorum():
            return None
        return max(0.0, self._first + self.document.rules.deadline - time.monotonic())

    async def _round(self) -> None:
        """Merges, stores and broadcasts, in this order: a broadcast is never lost by a restart."""
        passed, first = not self._is_complete(), self._first or time.monotonic()
        entered = self.aggregator.merge()
        self._first = None
        self._rounds += 1
        stopped = self._guard_report.update(
            self.aggregator.stopped(), {name for name, *_ in entered}
        )
        self._log_merge(entered, passed, time.monotonic() - first, stopped)
        sequence = min([self._next, *self._begun.values()])
        faults.reach("hub before store")
        await self._store.write(self.aggregator.snapshot(sequence))
        self._stored = sequence
        faults.reach("hub after store")
        await self._publish_model(self.subjects.broadcast)
        faults.reach("hub after broadcast")

    def _log_merge(
        self,
        entered: list[tuple[str, int, int]],
        passed: bool,
        waited: float,
        stopped: dict[str, list[str]],
    ) -> None:
        if self._merge_log is not None:
            self._merge_log.add(
                {
                    "version": self.aggregator.version,
                    "step": self.aggregator.step,
                    "time": round(time.time(), 3),
                    "waited": round(waited, 4),  # seconds since the first upload
                    "deadline": passed,  # whether it has passed
                    "uploads": entered,  # client, step, staleness
                    **stopped,
                }
            )

    async def _publish_model(self, subject: Callable[[int], str]) -> None:
        """Publishes the merged model, in chunks if it is large."""
        data = pack_broadcast(self.aggregator.broadcast())
        for n, chunk in enumerate(split(data, self._max_message, self.aggregator.version)):
            await retry(partial(self._js.publish, subject(n), chunk), self._gives_up)
            faults.reach("hub within broadcast")

    # --- background tasks --------------------------------------------------------------------------

    async def _keep_up(self) -> None:
        """Purges merged uploads from the stream and publishes the status, again and again."""
        purged = 1  # the first sequence: servers up to 2.11 take "before 1" for everything
        while True:
            await asyncio.sleep(UPKEEP)
            self._watch_connection()
            with contextlib.suppress(nats.errors.Error, TimeoutError):
                if self._stored > purged:
                    purged = self._stored
                    await self._js.purge_stream(self.subjects.upload_stream, seq=purged)
                await self._publish_status()

    def _watch_connection(self) -> None:
        """Logs that the connection is lost, and that it is back."""
        if self._connection.is_connected != self._connected:
            self._connected = not self._connected
            what = "is back" if self._connected else "is lost: merges wait until it is back"
            log.warning("%s: the connection to the NATS server %s", self.document.rules.run, what)

    async def _send_heartbeats(self) -> None:
        """Sends heartbeats; in lockstep with the clients whose upload is missing, so that they send it again."""
        while True:
            await asyncio.sleep(HEARTBEAT)
            due = self.aggregator.due if self.document.lockstep else 0
            missing = pack_heartbeat(due, self.aggregator.missing()) if due else b""
            with contextlib.suppress(nats.errors.Error):
                await self._connection.publish(self.subjects.hub_heartbeat, missing)

    # --- status ------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The state of the run, as JSON."""
        now = time.monotonic()
        aggregator = self.aggregator
        clipped, held = aggregator.stopped()
        state = "finished" if self.finished else "paused" if self._paused else "running"
        state = state if self._connection.is_connected else "disconnected"
        clients = {
            name: {
                "samples": int(aggregator.received[k]),
                "merged": int(aggregator.merged[k]),
                "loss": float(aggregator.losses[k]),
                "mean_loss": float(aggregator.losses[k]) / max(int(aggregator.received[k]), 1),
                "bytes_up": int(aggregator.bytes_up[k]),
                "staleness": int(aggregator.staleness[k]),
                "clipped": int(clipped[k]),
                "held": int(held[k]),
                "refused": dict(aggregator.refused[k]),
                "state": self._state(k, name, now),
            }
            for k, name in enumerate(self.document.clients)
        }
        broadcast = aggregator.version * self.document.broadcast_bytes
        return {
            "run": self.document.rules.run,
            "state": state,
            "pace": self.document.rules.pace,
            "version": aggregator.version,
            "step": aggregator.step,
            "rounds_per_second": round(self._rounds / max(now - self._started, 1e-9), 2),
            "bytes_down": broadcast * len(self.document.clients),  # as the simulator counts them
            "waiting": {
                "clients": len(aggregator.uploaded),
                "quorum": self.document.quorum,
            },
            "candidate": against(list(self._compared.values())),
            "clients": clients,
        }

    def _state(self, k: int, name: str, now: float) -> str:
        """The state of a client: present, late, lost, away or quarantined."""
        if self.aggregator.quarantined(k):
            return "quarantined"
        state = self._presence.state(name)
        if state != PRESENT:
            return state
        waited = self.document.lockstep and self._first and now - self._first > LATE
        missing = (k, self.aggregator.due) not in self.aggregator.waiting
        return "late" if waited and missing else state

    async def _publish_status(self) -> None:
        await self._connection.publish(self.subjects.status, json.dumps(self.status()).encode())
