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
import numpy as np
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mainstem.engines.federate import faults, full_disk
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.client_status import client_statuses
from mainstem.engines.federate.hub.disk_watch import DiskWatch
from mainstem.engines.federate.hub.guard_report import GuardReport
from mainstem.engines.federate.hub.intake import Intake
from mainstem.engines.federate.hub.loss_alarm import LossAlarm
from mainstem.engines.federate.hub.merge_log import MergeLog
from mainstem.engines.federate.hub.positions import Positions, now
from mainstem.engines.federate.hub.presence import Presence
from mainstem.engines.federate.hub.state_copy import StateCopy, later
from mainstem.engines.federate.protocol.candidate import Compared, against
from mainstem.engines.federate.protocol.chunking import split
from mainstem.engines.federate.protocol.heartbeats import GOODBYE, Position, pack_hub, read_client
from mainstem.engines.federate.protocol.messages import HEADROOM, Broadcast, pack_broadcast
from mainstem.engines.federate.protocol.run_document import RunDocument, encode
from mainstem.engines.federate.transport.client_heartbeats import ClientHeartbeats
from mainstem.engines.federate.transport.retry import GivenUp, retry
from mainstem.engines.federate.transport.state_store import StateStore, StoredState
from mainstem.engines.federate.transport.streams import create_streams, stored_broadcasts
from mainstem.engines.federate.transport.tasks import log

HEARTBEAT = 1.0  # seconds between two heartbeats of the hub
UPKEEP = 1.0  # seconds between two copies of the state, purges of merged uploads and status reports
STOP_TIMEOUT = 5.0  # seconds for which a hub that is asked to stop waits for the server
DISK = 10.0  # seconds between two looks at whether the NATS server stores
SENT = 2  # turns of the event loop after which nats-py has sent what it was given
RENEWAL = 0.5  # seconds between two subscriptions to heartbeats of a client


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
        self._intake = Intake(self.aggregator, connection, self._js, self._on_upload)
        self._positions = Positions(document.quorum, self.aggregator.next_sync)
        self._saving = asyncio.Lock()
        self._stored = 1  # uploads before this sequence are merged, and the state is stored
        self._changed = asyncio.Event()  # a merge may be due
        self._first: float | None = None  # when the first waiting upload came
        self._counting = False  # whether the round waits for its deadline
        self._paused = False  # by order
        self._alarm = LossAlarm(self.aggregator)
        self._finished = False
        self.stopped = False
        self._ended = False  # whether `serve` has
        self._stop_time: float | None = None
        self._connected = True
        self._presence = Presence()
        self._heartbeats = ClientHeartbeats(
            connection, self.subjects, document.clients, self._on_heartbeat
        )
        self._compared: dict[
            str, Compared
        ] = {}  # latest comparison of each client with a candidate
        self._disk = DiskWatch(self._js, self.subjects, self._packed_status)
        self._folder = folder
        self._merge_log: MergeLog | None = None
        self._started = time.monotonic()
        self._rounds = 0  # since this process started

    # --- opening -----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Creates or finds the run's streams, restores the newest stored state and broadcasts the model."""
        self._store = await StateStore.open(
            self._js, self.subjects.bucket, self._max_message, self._replicas, self._gives_up
        )
        await self._create_streams()
        self._copy = StateCopy(self._folder, self.document.rules.run)
        await self._restore()
        self._guard_report = GuardReport(
            self.document.rules.run, self.document.clients, self.aggregator.stopped()
        )
        if self._folder is not None:
            path = self._folder / "merges.jsonl"
            self._merge_log = MergeLog(path, self.aggregator.version)
            self._write_log = full_disk.Writer(str(path))
        await self._store_and_broadcast(document=True)
        self._copy.write()
        await self._connection.subscribe(self.subjects.control, cb=self._on_command)
        await self._heartbeats.open()
        await self._publish_status()

    async def _create_streams(self) -> None:
        most = min(self.aggregator.most_bytes, self._max_message) + HEADROOM
        await create_streams(self._js, self.document, self._intake.chunks, most, self._replicas)

    async def _restore(self) -> None:
        """Restores the later of the states on the server and in the folder, and reads uploads from there on."""
        there, here = await self._store.read(), self._copy.read()
        found, uploads = later(there, here, self.document.rules.run), self._intake.log
        if found is None:
            self.aggregator.begin_epoch(now(), 0)
            await uploads.read_from(1)
            return
        uploads.next, unfinished = self.aggregator.restore(found.data)
        if self.document.algorithm.collect.based:
            async for broadcast in stored_broadcasts(self._js, self.document):
                self.aggregator.add_base(broadcast)
        complete = found is there and await uploads.check()
        if unfinished or not complete:  # clients send again what was not merged
            self.aggregator.begin_epoch(max(now(), found.epoch + 1), 0)
        await uploads.read_from(uploads.next if complete else 1)
        if not complete:
            what = "" if there is None else f", and an older state, of merge {there.version}"
            log.warning(
                "%s: the NATS server has lost uploads of this run%s: it continues at merge %d, in a new epoch",
                self.document.rules.run,
                what,
                found.version,
            )

    async def _store_and_broadcast(self, document: bool = False) -> None:
        """Stores the state, and then publishes the model, after the document if asked: a restart loses neither."""
        aggregator = self.aggregator
        sequence = self._intake.next_unmerged
        data = aggregator.snapshot(sequence, self._intake.unfinished)
        state = StoredState(aggregator.epoch, aggregator.version, data)
        faults.reach("hub before store")
        packing = asyncio.create_task(_packed(aggregator.broadcast()))
        await self._store.write(state)
        self._stored = sequence
        faults.reach("hub after store")
        self._copy.note(state.data)
        if document:
            await self._publish(self.subjects.document, encode(self.document))
        await self._publish_model(self.subjects.broadcast, await packing)

    async def _publish_model(self, subject: Callable[[int], str], data: bytes) -> None:
        """Publishes a model, in chunks if it is large."""
        for n, chunk in enumerate(split(data, self._max_message, self.aggregator.version)):
            await self._publish(subject(n), chunk)
            faults.reach("hub within broadcast")

    async def _publish(self, subject: str, data: bytes) -> None:
        await retry(partial(self._js.publish, subject, data), self._gives_up)

    # --- messages ----------------------------------------------------------------------------------

    def _on_upload(self, client: str, accepted: bool) -> None:
        """A merge may be due now. After a refusal too: a client that is quarantined now is no longer expected."""
        self._presence.uploaded(client)
        if accepted:
            self._first = self._first or time.monotonic()
        counts = accepted and not self._counting and self._time_left() is not None
        if counts or self._is_complete():
            self._changed.set()

    def _on_heartbeat(self, client: str, data: bytes) -> None:
        if data == GOODBYE:
            self._presence.left(client)
            if self._is_complete():  # it is no longer expected
                self._changed.set()
            return
        self._presence.came(client)
        with contextlib.suppress(ValueError, TypeError):
            position, session, compared = read_client(data)
            if self._presence.is_twice(client, session):
                log.warning(
                    "%s: client %s is there twice: is its folder a copy? Uploads of one of the two are refused",
                    self.document.rules.run,
                    client,
                )
            self._positions.note(client, position)
            if compared is not None:
                self._compared[client] = compared

    async def _on_command(self, message: Msg) -> None:
        """Executes pause, resume, back, finish or candidate, and answers with the status."""
        command, refused = message.data.decode(errors="replace"), None
        if command == "pause":
            self._paused = True
        elif command == "resume":
            self._resume()
        elif command == "back" and self._alarm.good is not None:
            await self._go_back(self._alarm.good)
        elif command == "back":
            refused = "there is no earlier model to go back to"
        elif command == "finish":
            self._finished = True
        elif command != "candidate":
            refused = f"there is no command {command!r}"
        elif self.document.algorithm.personal:
            refused = "a candidate must be a whole model, and the hub has the shared part only"
        else:
            candidate = pack_broadcast(self.aggregator.broadcast())
            await self._publish_model(self.subjects.candidate, candidate)
        self._changed.set()
        answer = self.status() if refused is None else {"refused": refused}
        await message.respond(json.dumps(answer).encode())

    # --- rounds ------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Runs rounds until the run is finished or `stop` is called. A failed background task ends it too."""
        background = asyncio.gather(
            self._keep_up(),
            self._send_heartbeats(),
            self._renew_heartbeats(),
            self._watch_disk(),
        )
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
            self._ended = True
            self._copy.write()
            background.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await background
            if self._merge_log is not None:
                self._merge_log.close()

    def stop(self) -> None:
        """Ends `serve` after the current round.

        Cancelling it would not be safe: within nats-py, `asyncio.wait_for` of Python 3.11 can lose a cancellation.
        That is why the background tasks look whether `serve` has ended, too.
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

    @property
    def _waits(self) -> bool:
        """Whether nothing is merged until an order comes."""
        return self._paused or self._alarm.holds

    async def _merge_is_due(self) -> bool:
        """Waits until all expected uploads are in, or the deadline passes with a quorum, or something changes."""
        if self._is_complete() and not self._waits:
            return True
        self._changed.clear()
        left = self._time_left()
        self._counting = left is not None
        if left is None:
            await self._changed.wait()
            return self._is_complete() and not self._waits
        try:
            async with asyncio.timeout(left):
                await self._changed.wait()
        except TimeoutError:
            return self.aggregator.has_quorum() and not self._waits
        return self._is_complete() and not self._waits

    def _is_complete(self) -> bool:
        """Whether all expected uploads are in. At the free pace, nothing is expected of clients that are lost."""
        if self.document.lockstep:
            return self.aggregator.is_complete()
        absent = self._presence.absent(self.aggregator.indices)
        return self.aggregator.is_complete(absent)

    def _time_left(self) -> float | None:
        """Seconds until the deadline of the current round."""
        if self.document.rules.deadline is None or self._first is None or self._waits:
            return None
        if not self.aggregator.has_quorum():
            return None
        return max(0.0, self._first + self.document.rules.deadline - time.monotonic())

    async def _round(self) -> None:
        """Merges, stores and broadcasts."""
        passed, first = not self._is_complete(), self._first or time.monotonic()
        entered = self.aggregator.merge()
        self._first = None
        self._rounds += 1
        self._alarm.check()
        stopped = self._guard_report.update(self.aggregator.stopped(), entered)
        self._log_merge(entered, passed, time.monotonic() - first, stopped)
        async with self._saving:
            await self._store_and_broadcast()
        faults.reach("hub after broadcast")
        if self._intake.is_crowded:
            with contextlib.suppress(nats.errors.Error, TimeoutError):
                await self._intake.purge(self._stored)

    def _resume(self) -> None:
        self._paused = False
        self._alarm.resume()

    async def _go_back(self, version: int) -> None:
        """Publishes an earlier model as the newest, and goes on from there."""
        async with self._saving:
            self._alarm.go_back()
            await self._store_and_broadcast()
        log.warning("%s: has gone back to the model of merge %d", self.document.rules.run, version)
        self._resume()

    def _log_merge(
        self,
        entered: list[tuple[str, int, int]],
        passed: bool,
        waited: float,
        stopped: dict[str, list[str]],
    ) -> None:
        if self._merge_log is not None:
            line = {
                "version": self.aggregator.version,
                "step": self.aggregator.step,
                "time": round(time.time(), 3),
                "waited": round(waited, 4),  # seconds since the first upload
                "deadline": passed,  # whether it has passed
                "uploads": entered,  # client, step, staleness
                **stopped,
            }
            self._write_log(partial(self._merge_log.add, line))

    # --- background tasks --------------------------------------------------------------------------

    async def _keep_up(self) -> None:
        """Writes the copy, purges merged uploads, looks for losses and publishes the status, again and again."""
        while not self._ended:
            await asyncio.sleep(UPKEEP)
            self._copy.write()
            self._watch_connection()
            with contextlib.suppress(nats.errors.Error, TimeoutError):
                if not await self._intake.log.check():
                    await self._refill()
                await self._store.check()
                await self._follow_clients()
                await self._intake.purge(self._stored)
                await self._publish_status()

    async def _watch_disk(self) -> None:
        """Looks whether the NATS server stores what it is sent."""
        while not self._ended:
            await asyncio.sleep(DISK)
            with contextlib.suppress(nats.errors.Error, TimeoutError):
                if await self._disk.removed():
                    await self._refill()

    async def _refill(self) -> None:
        """Makes the streams anew, from memory: the server has lost them, or was restored from a backup."""
        await self._store.create()
        await self._create_streams()
        log.error(
            "%s: the NATS server has lost uploads of this run, as after a restored backup: it continues at merge "
            "%d, in a new epoch; clients send again what was not merged",
            self.document.rules.run,
            self.aggregator.version,
        )
        self._stored = 1
        await self._intake.restart()
        await self._begin_epoch(self.aggregator.epoch, 0)

    async def _follow_clients(self) -> None:
        """Begins a new epoch if clients have seen merges that this hub does not know: it was set back."""
        hub = self._position()
        if self.document.lockstep and not hub.step:
            return  # the run has ended
        was = self._positions.ahead(hub)
        if was is not None:
            log.error(
                "%s: was at merge %d, and is at merge %d after a loss or a restored backup: it continues there, "
                "in a new epoch",
                self.document.rules.run,
                was.version,
                self.aggregator.version,
            )
            await self._begin_epoch(was.epoch, was.step)

    async def _begin_epoch(self, after: int, step: int) -> None:
        """Begins an epoch later than `after`; in lockstep `step` is due next."""
        async with self._saving:
            self.aggregator.begin_epoch(max(now(), after + 1, self.aggregator.epoch + 1), step)
            await self._store_and_broadcast(document=True)
            self._copy.write()
        self._changed.set()

    def _position(self) -> Position:
        """Where this hub is in the run."""
        due = self.aggregator.due if self.document.lockstep else 0
        return Position(self.aggregator.epoch, self.aggregator.version, due)

    def _watch_connection(self) -> None:
        """Logs that the connection is lost, and that it is back."""
        if self._connection.is_connected != self._connected:
            self._connected = not self._connected
            what = "is back" if self._connected else "is lost: merges wait until it is back"
            log.warning("%s: the connection to the NATS server %s", self.document.rules.run, what)

    async def _send_heartbeats(self) -> None:
        """Sends heartbeats; in lockstep with the clients whose upload is missing, so that they send it again."""
        while not self._ended:
            await asyncio.sleep(HEARTBEAT)
            position = self._position()
            missing = self.aggregator.missing() if position.step else np.zeros(0, bool)
            with contextlib.suppress(nats.errors.Error):
                data = pack_hub(position, missing)
                await self._connection.publish(self.subjects.hub_heartbeat, data)

    async def _renew_heartbeats(self) -> None:
        """Keeps the clients' heartbeats coming."""
        while not self._ended:
            await asyncio.sleep(RENEWAL)
            with contextlib.suppress(nats.errors.Error):
                await self._heartbeats.renew()

    # --- status ------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The state of the run, as JSON."""
        aggregator = self.aggregator
        waits = "held" if self._alarm.holds else "paused"
        state = "finished" if self.finished else waits if self._waits else "running"
        state = state if self._connection.is_connected else "disconnected"
        since = max(time.monotonic() - self._started, 1e-9)
        broadcast = aggregator.version * self.document.broadcast_bytes
        return {
            "run": self.document.rules.run,
            "state": state,
            "pace": self.document.rules.pace,
            "epoch": aggregator.epoch,
            "version": aggregator.version,
            "step": aggregator.step,
            "rounds_per_second": round(self._rounds / since, 2),
            "bytes_down": broadcast * len(self.document.clients),  # as the simulator counts them
            "waiting": {
                "clients": len(aggregator.uploaded),
                "quorum": self.document.quorum,
            },
            "candidate": against(list(self._compared.values())),
            "clients": client_statuses(aggregator, self._presence, self._first),
        }

    def _packed_status(self) -> bytes:
        return json.dumps(self.status()).encode()

    async def _publish_status(self) -> None:
        await self._connection.publish(self.subjects.status, self._packed_status())


async def _packed(broadcast: Broadcast) -> bytes:
    """An encoded broadcast. It is encoded while the server stores the state: not before that was sent."""
    for _ in range(SENT):
        await asyncio.sleep(0)
    return pack_broadcast(broadcast)
