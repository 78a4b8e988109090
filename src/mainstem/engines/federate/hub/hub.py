"""Serves a run: reads uploads, runs rounds (merge, store, broadcast), obeys orders, publishes the status.

The upload stream is a log. The stored state names the sequence to read from. After a restart the hub reads from
there, and skips an upload whose step is not newer than its client's received step. So each upload is merged once.
"""

import asyncio
import contextlib
import json
import math
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import nats.errors
import numpy as np
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mainstem.engines.federate import event_log, faults
from mainstem.engines.federate.hub import orders
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.alarms import Alarm, Alarms
from mainstem.engines.federate.hub.certificate_watch import CertificateWatch
from mainstem.engines.federate.hub.checkpoints import Checkpoints
from mainstem.engines.federate.hub.clients import Clients
from mainstem.engines.federate.hub.disk_watch import DiskWatch
from mainstem.engines.federate.hub.guard_report import GuardReport
from mainstem.engines.federate.hub.health import Health
from mainstem.engines.federate.hub.history import History
from mainstem.engines.federate.hub.intake import Intake
from mainstem.engines.federate.hub.loss_alarm import LossAlarm
from mainstem.engines.federate.hub.metrics import Metrics
from mainstem.engines.federate.hub.model_file import write_model
from mainstem.engines.federate.hub.positions import now
from mainstem.engines.federate.hub.publisher import Publisher
from mainstem.engines.federate.hub.recent_rate import RecentRate
from mainstem.engines.federate.hub.round_clock import RoundClock
from mainstem.engines.federate.hub.state_copy import StateCopy, later
from mainstem.engines.federate.hub.status import client_statuses, run_status
from mainstem.engines.federate.protocol import timeline
from mainstem.engines.federate.protocol.changes import Change, continued
from mainstem.engines.federate.protocol.comparisons import with_alone, with_candidate
from mainstem.engines.federate.protocol.heartbeats import Position, pack_hub
from mainstem.engines.federate.protocol.messages import (
    HEADROOM,
    Reason,
    Refused,
)
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.engines.federate.protocol.state_format import unpack
from mainstem.engines.federate.transport.client_heartbeats import ClientHeartbeats
from mainstem.engines.federate.transport.retry import GivenUp, retry
from mainstem.engines.federate.transport.state_store import StateStore
from mainstem.engines.federate.transport.streams import create_streams, stored_broadcasts
from mainstem.errors import MainstemError

HEARTBEAT = 1.0  # seconds between two heartbeats of the hub
UPKEEP = 1.0  # seconds between two copies of the state, purges of merged uploads and status reports
STOP_TIMEOUT = 5.0  # seconds for which a hub that is asked to stop waits for the server
DISK = 10.0  # seconds between two looks at whether the NATS server stores
CERTIFICATE = 60.0  # seconds between two looks at the server's certificate
RENEWAL = 0.5  # seconds between two subscriptions to heartbeats of a client


class Hub:
    """Serves one run on a connection."""

    def __init__(
        self,
        document: RunDocument,
        connection: Client,
        replicas: int = 1,
        folder: Path | None = None,
        metrics: Metrics | None = None,
        connect: Callable[[], Awaitable[Client]] | None = None,
    ):
        self.aggregator = Aggregator(document)
        self.subjects = document.subjects
        self._connection = connection
        self._js: JetStreamContext = connection.jetstream(timeout=10)
        self._replicas = replicas
        self._max_message = connection.max_payload - HEADROOM
        self._alarms = Alarms(document.rules.run)
        self._clients = Clients(self.aggregator, self._alarms, self._notify, self._on_goodbye)
        self._presence = self._clients.presence
        self._intake = Intake(
            self.aggregator, connection, self._js, self._presence, self._on_upload
        )
        self._clock = RoundClock(self.aggregator, self._presence, self._waits)
        self._saving = asyncio.Lock()
        self.paused = False  # by order
        self._alarm = LossAlarm(self.aggregator)
        self._finished = False
        self.stopped = False
        self._ended = False  # whether `serve` has
        self._stop_time: float | None = None
        self._health = Health(self.aggregator, self._presence, self._alarms)
        self._certificate = CertificateWatch(connection, connect)
        self._disk = DiskWatch(self._js, self.subjects, self._packed_status)
        self._folder = folder
        self._metrics = metrics
        self._checkpoints = Checkpoints(folder, self.aggregator)
        self._rounds = RecentRate()
        self._history = History(None, self.aggregator, 0)  # until it is open
        self._counted = -math.inf  # the time of the last moment of the timeline

    # --- opening -----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Creates or finds the run's streams, restores the newest stored state and broadcasts the model."""
        self._store = await StateStore.open(
            self._js, self.subjects.bucket, self._max_message, self._replicas, self._gives_up
        )
        self._copy = StateCopy(self._folder, self.document.rules.run)
        before = await self._restore()
        self._history = History(self._folder, self.aggregator, before.revision)
        self._publisher = Publisher(
            self.aggregator, self._intake, self._store, self._copy, self._send, self._max_message
        )
        if before.revision != self.document.revision:
            self._log_change("the file was edited")
        self._guard_report = GuardReport(self.aggregator.stopped())
        await self._publisher.publish(document=True)
        self._copy.write()
        await self._connection.subscribe(self.subjects.control, cb=self._on_order)
        clients, heard = self.document.clients, self._clients.on_heartbeat
        self._heartbeats = ClientHeartbeats(self._connection, self.subjects, clients, heard)
        await self._heartbeats.open()
        await self._publish_status()

    async def _create_streams(self) -> None:
        most = min(self.aggregator.most_bytes, self._max_message) + HEADROOM
        await create_streams(self._js, self.document, self._intake.room, most, self._replicas)

    @property
    def document(self) -> RunDocument:
        """The run document, in its newest revision."""
        return self.aggregator.document

    async def _restore(self) -> RunDocument:
        """Restores the later of the states on the server and in the folder, and reads uploads from there on.

        Returns the document of that state; what was edited in the file since is applied to it.
        """
        there, here = await self._store.read(), self._copy.read()
        found, uploads = later(there, here, self.document.rules.run), self._intake.log
        if found is None:
            self.aggregator.begin_epoch(now(), 0)
            await self._create_streams()
            await uploads.read_from(1)
            return self.document
        bundle = unpack(found.data, "the hub's state")
        before, after = continued(bundle.values["document"], self.document)
        uploads.next, unfinished = self.aggregator.restore(bundle, before)
        if after.revision == before.revision:
            self.aggregator.document = after
        else:
            self.aggregator.change(after)
        self._intake.follow_roster()
        await self._create_streams()
        if self.document.algorithm.collect.based:
            async for broadcast in stored_broadcasts(self._js, self.document):
                self.aggregator.add_base(broadcast)
        complete = found is there and await uploads.check()
        if unfinished or not complete:  # clients send again what was not merged
            self.aggregator.begin_epoch(max(now(), found.epoch + 1), 0)
        await uploads.read_from(uploads.next if complete else 1)
        if not complete:
            what = "" if there is None else f", and an older state, of merge {there.version}"
            text = f"the NATS server has lost uploads of this run{what}: it continues at merge {found.version}"
            self._alarms.happened(Alarm.STORE_LOST, f"{text}, in a new epoch")
        return before

    async def _send(self, subject: str, data: bytes) -> None:
        await retry(partial(self._js.publish, subject, data), self._gives_up)

    # --- messages ----------------------------------------------------------------------------------

    def _on_upload(self, client: str, refusal: Refused | None) -> None:
        if refusal is None:
            self._presence.uploaded(client)
        elif refusal.reason is Reason.SESSION:
            self._clients.report_twice(client)
        self._clock.arrived(refusal is None)

    def _on_goodbye(self) -> None:
        self._clock.left()

    async def _notify(self, client: str, refusal: Refused, session: int) -> None:
        await self._intake.notify(client, refusal, session)

    async def _on_order(self, message: Msg) -> None:
        """Executes an order, and answers with the status."""
        answer = await orders.execute(self, message.data)
        self._clock.changed.set()
        await message.respond(json.dumps(answer).encode())

    # --- rounds ------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Runs rounds until the run is finished or `stop` is called. A failed background task ends it too."""
        background = asyncio.gather(
            self._keep_up(),
            self._send_heartbeats(),
            self._renew_heartbeats(),
            self._watch_disk(),
            self._watch_certificate(),
        )
        background.add_done_callback(lambda _: self._clock.changed.set())
        try:
            while not self.finished and not self.stopped and not background.done():
                if await self._clock.is_due():
                    await self._round()
            if background.done():
                await background  # raises its error
            await retry(self._publish_status, self._gives_up)
        except GivenUp:
            text = "ended while the NATS server did not answer; what it has not stored is merged again later"
            event_log.warning("ended_without_server", text, run=self.document.rules.run)
        finally:
            self._ended = True
            self._copy.write()
            background.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await background
            self._history.close()

    def stop(self) -> None:
        """Ends `serve` after the current round.

        Cancelling it would not be safe: within nats-py, `asyncio.wait_for` of Python 3.11 can lose a cancellation.
        That is why the background tasks look whether `serve` has ended, too.
        """
        self.stopped = True
        self._stop_time = self._stop_time or time.monotonic()
        self._clock.changed.set()

    def _gives_up(self) -> bool:
        """Whether it was asked to stop some time ago: then it no longer waits for the server."""
        return self._stop_time is not None and time.monotonic() - self._stop_time > STOP_TIMEOUT

    @property
    def finished(self) -> bool:
        """Whether the run has ended."""
        ended = self.document.lockstep and self.document.rules.steps and self.aggregator.due == 0
        return self._finished or bool(ended)

    def _waits(self) -> bool:
        """Whether nothing is merged until an order comes."""
        return self.paused or self._alarm.holds

    async def _round(self) -> None:
        """Merges, stores and broadcasts."""
        passed, first = not self._clock.is_complete(), self._clock.first or time.monotonic()
        entered = self.aggregator.merge()
        self._clock.first = None
        self._rounds.add()
        self._checkpoints.store()
        self._alarm.check()
        stopped = self._guard_report.update(
            self.document.clients, self.aggregator.stopped(), entered
        )
        waited = time.monotonic() - first
        self._history.merged(entered, waited, passed, stopped)
        if self._metrics is not None:
            self._metrics.merged(waited)
        async with self._saving:
            await self._publisher.publish()
        faults.reach("hub after broadcast")
        if self._intake.is_crowded:
            with contextlib.suppress(nats.errors.Error, TimeoutError):
                await self._intake.purge(self._publisher.stored)

    # --- orders ------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Goes on merging."""
        self.paused = False
        self._alarm.resume()

    def finish(self) -> None:
        """Ends the run."""
        self._finished = True

    async def go_back(self, merge: int | None = None) -> None:
        """Publishes an earlier model as the newest, and goes on from there; by default the last good one."""
        earlier = self._alarm.last_good if merge is None else self._checkpoints.read(merge)
        version = self._alarm.good if merge is None else merge
        async with self._saving:
            self.aggregator.version += 1
            dropped = self.aggregator.go_back(*earlier)
            await self._publisher.publish()
            self._history.went_back(version, dropped)
        text = f"has gone back to the model of merge {version}"
        event_log.warning("went_back", text, run=self.document.rules.run)
        self.resume()

    def write_model(self) -> None:
        """Writes the present model to the folder."""
        if self._folder is None:
            raise MainstemError("this hub has no folder")
        path = write_model(self._folder, self.aggregator)
        event_log.info("model_written", f"{path} is written", run=self.document.rules.run)

    async def publish_candidate(self) -> None:
        """Has clients compare themselves with the present model."""
        await self._publisher.publish_candidate()

    def forgive(self, client: str) -> None:
        """Ends the quarantine of a client."""
        if client not in self.aggregator.indices:
            raise MainstemError(f"{self.document.rules.run}: has no client {client!r}")
        self.aggregator.records.forgive(self.aggregator.indices[client])
        self._alarms.forget(client)

    async def change(self, document: RunDocument, change: Change) -> None:
        """Goes on with another revision of the document, from the next merge on."""
        async with self._saving:
            self.aggregator.change(document, change.rename)
            self._intake.follow_roster()
            await self._create_streams()
            await self._publisher.publish(document=True)
            self._copy.write()
            self._log_change(str(change))
        await self._heartbeats.follow(document.clients)
        self._clock.changed.set()

    def _log_change(self, what: str) -> None:
        """Logs a change, in force from the next merge on."""
        text = f"{what}, from merge {self.aggregator.version + 1} on"
        event_log.warning("changed", text, run=self.document.rules.run)
        self._history.changed(what)

    # --- background tasks --------------------------------------------------------------------------

    async def _keep_up(self) -> None:
        """Writes the copy, purges merged uploads, looks for losses and publishes the status, again and again."""
        while not self._ended:
            await asyncio.sleep(UPKEEP)
            self._copy.write()
            self._history.retry()
            with contextlib.suppress(nats.errors.Error, TimeoutError):
                if not await self._intake.log.check():
                    await self._refill()
                await self._store.check()
                await self._follow_clients()
                await self._intake.purge(self._publisher.stored)

    async def _watch_disk(self) -> None:
        """Looks whether the NATS server stores what it is sent."""
        while not self._ended:
            await asyncio.sleep(DISK)
            with contextlib.suppress(nats.errors.Error, TimeoutError):
                if await self._disk.removed():
                    await self._refill()

    async def _watch_certificate(self) -> None:
        """Looks at the certificate of the NATS server, which may be renewed while this hub is connected."""
        while not self._ended:
            await asyncio.sleep(CERTIFICATE)
            await self._certificate.renew()

    async def _refill(self) -> None:
        """Makes the streams anew, from memory: the server has lost them, or was restored from a backup."""
        await self._store.create()
        await self._create_streams()
        text = "the NATS server has lost uploads of this run, as after a restored backup: it continues at merge "
        text += f"{self.aggregator.version}, in a new epoch; clients send again what was not merged"
        self._alarms.happened(Alarm.STORE_LOST, text)
        self._publisher.stored = 1
        await self._intake.restart()
        await self._begin_epoch(self.aggregator.epoch, 0)

    async def _follow_clients(self) -> None:
        """Begins a new epoch if clients have seen merges that this hub does not know: it was set back."""
        hub = self._position()
        if self.document.lockstep and not hub.step:
            return  # the run has ended
        was = self._clients.positions.ahead(hub)
        if was is not None:
            text = f"was at merge {was.version}, and is at merge {self.aggregator.version} after a loss"
            text += " or a restored backup: it continues there, in a new epoch"
            self._alarms.happened(Alarm.STORE_LOST, text)
            await self._begin_epoch(was.epoch, was.step)

    async def _begin_epoch(self, after: int, step: int) -> None:
        """Begins an epoch later than `after`; in lockstep `step` is due next."""
        async with self._saving:
            self.aggregator.begin_epoch(max(now(), after + 1, self.aggregator.epoch + 1), step)
            await self._publisher.publish(document=True)
            self._copy.write()
        self._clock.changed.set()

    def _position(self) -> Position:
        """Where this hub is in the run."""
        due = self.aggregator.due if self.document.lockstep else 0
        return Position(self.aggregator.epoch, self.aggregator.version, due)

    async def _send_heartbeats(self) -> None:
        """Sends heartbeats; in lockstep with the clients whose upload is missing, so that they send it again."""
        while not self._ended:
            await asyncio.sleep(HEARTBEAT)
            self._check_health()
            position = self._position()
            missing = self.aggregator.missing() if position.step else np.zeros(0, bool)
            heartbeat = pack_hub(position, self.document.revision, missing)
            status = self._shown_status()  # metrics show it without a server too
            with contextlib.suppress(nats.errors.Error):
                await self._connection.publish(self.subjects.hub_heartbeat, heartbeat)
                await self._publish_status(status)

    def _check_health(self) -> None:
        """Raises and clears alarms."""
        self._health.check_server(self._connection.is_connected, self._disk.stores)
        self._health.check_certificate(self._certificate.days)
        self._health.check_folder(self._history.failed or self._copy.failed)
        self._health.check_rounds(self._clock.first, self._alarm.holds, self._waits())
        self._health.check_clients(self._guard_report.left_out)

    async def _renew_heartbeats(self) -> None:
        """Keeps the clients' heartbeats coming."""
        while not self._ended:
            await asyncio.sleep(RENEWAL)
            with contextlib.suppress(nats.errors.Error):
                await self._heartbeats.renew()

    # --- status ------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The state of the run, as JSON."""
        compared, alone = self._clients.compared, self._clients.alone
        clients = client_statuses(self.aggregator, self._presence, self._clock.first, alone)
        return run_status(self.aggregator, self._state, clients) | {
            "rounds_per_second": round(self._rounds.per_second(), 2),
            "certificate_days": self._certificate.days,
            "checkpoints": self._checkpoints.merges[-8:],
            "candidate": with_candidate([compared[name] for name in clients if name in compared]),
            "alone": with_alone([alone[name] for name in clients if name in alone]),
            "merges": list(self._history.recent),
            "alarms": self._alarms.current(),
        }

    @property
    def _state(self) -> str:
        if self.finished:
            return "finished"
        if self.stopped:
            return "stopped"
        if not self._connection.is_connected:
            return "disconnected"
        return "held" if self._alarm.holds else "paused" if self.paused else "running"

    def _packed_status(self) -> bytes:
        return json.dumps(self.status()).encode()

    def _shown_status(self) -> dict[str, Any]:
        """The status; metrics show it from now on."""
        status = self.status()
        if self._metrics is not None:
            self._metrics.update(status)
        return status

    async def _publish_status(self, status: dict[str, Any] | None = None) -> None:
        """Publishes the status, and what it counts to the places of the timeline that are due."""
        status = status or self._shown_status()
        await self._connection.publish(self.subjects.status, json.dumps(status).encode())
        due = timeline.places(status["time"], self._counted)
        self._counted = status["time"]
        if due:
            data = timeline.pack(timeline.moment(status))
            for place in due:
                await self._connection.publish(self.subjects.moment(*place), data)
