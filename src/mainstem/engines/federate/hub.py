"""The hub: collects uploads, merges, stores, and only then says the new model.

The broker's stream of uploads is a log. The hub reads it from the place that its stored state names, so that a
hub killed at any instant and started again merges just what is not yet in: what lies before that place is in,
and what lies after it and is in all the same is known by its client's newest merged step.
"""

import asyncio
import contextlib
import json
import math
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

from mainstem.engines.federate import streams
from mainstem.engines.federate.candidate import Compared, against, read_compared
from mainstem.engines.federate.charter import Charter
from mainstem.engines.federate.faults import reach
from mainstem.engines.federate.insist import insist
from mainstem.engines.federate.merges import Merges
from mainstem.engines.federate.pieces import Joiner, cut
from mainstem.engines.federate.store import Store
from mainstem.engines.federate.table import HARMLESS, Table
from mainstem.engines.federate.wire import (
    LEFT,
    SLACK,
    Reason,
    Refused,
    pack_broadcast,
    pack_missing,
)

BEAT = 1.0  # seconds between two signs of life
SWEEP = 1.0  # seconds between two purges of what is merged, and between two reports
LATE, LOST = 1.0, 15.0  # seconds after which the others wait, and without any sign of life
HEARTBEAT = 1.0  # seconds between signs of life of the log; without two of them it is read anew


class Hub:
    """A run's hub on a connection. `serve` returns when the run is finished."""

    def __init__(
        self,
        charter: Charter,
        connection: Client,
        replicas: int = 1,
        folder: Path | None = None,
    ):
        self.charter = charter
        self.table = Table(charter)
        self.names = charter.names
        self._connection = connection
        self._js: JetStreamContext = connection.jetstream(timeout=10)
        self._replicas = replicas
        self._most = connection.max_payload - SLACK
        self._joiners = {name: Joiner(self.table.most_bytes) for name in charter.clients}
        self._begun: dict[str, int] = {}  # where a message in pieces begins
        self._next = 1  # place of the next upload on the broker
        self._stored = 1  # what lies before this place is in, and stored
        self._news = asyncio.Event()
        self._first: float | None = None  # when the first upload that waits came
        self._paused = False
        self._finished = False
        self.stopped = False
        self._heard: dict[str, float] = {}  # when each client was heard last
        self._compared: dict[str, Compared] = {}  # each client's newest with a candidate
        self._folder = folder
        self._merges: Merges | None = None
        self._started = time.monotonic()
        self._rounds = 0  # since this process started

    # --- opening -----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Make the run's streams, or find them; take up the stored state; say the model."""
        pieces = -(-self.table.most_bytes // self._most)
        await streams.made(self._js, self.charter, pieces, self._replicas)
        self._store = await Store.open(self._js, self.names.bucket, self._most, self._replicas)
        data = await self._store.read()
        if data is None:
            await self._store.write(self.table.stored(self._next))
        else:
            self._next = self.table.restore(data)
            if self.charter.algorithm.collect.based:
                async for said in streams.recalled(self._js, self.charter):
                    self.table.recall(said)
        if self._folder is not None:
            self._merges = Merges(self._folder / "merges.jsonl", self.table.version)
        await self._js.publish(self.names.spec, json.dumps(self.charter.document).encode())
        await self._say()
        await self._listen()
        await self._connection.subscribe(self.names.control, cb=self._ordered)
        await self._connection.subscribe(self.names.here("*"), cb=self._beaten)
        await self._report()

    async def _listen(self) -> None:
        """Read the log of uploads from the first that may not be in."""
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=max(1, self._next)
        )
        await self._js.subscribe(
            self.names.up("*"),
            stream=self.names.uploads,
            config=config,
            ordered_consumer=True,
            idle_heartbeat=HEARTBEAT,
            pending_bytes_limit=0,  # or nats-py drops what it takes for too much, unseen
            cb=self._uploaded,
        )

    # --- what comes in -----------------------------------------------------------------------------

    async def _uploaded(self, message: Msg) -> None:
        place = message.metadata.sequence.stream
        self._next = max(self._next, place + 1)
        client = message.subject.rpartition(".")[2]
        if client not in self._joiners:
            return
        self._heard[client] = time.monotonic()
        begun = self._begun.setdefault(client, place)
        try:
            data = self._joined(client, message.data)
            if data is None:
                return
            self._begun.pop(client)
            self.table.take(client, data, begun)
        except Refused as refusal:
            self._begun.pop(client, None)
            await self._tell(client, refusal)
            if self._complete():  # nobody waits for who is quarantined now
                self._news.set()
            return
        if self._first is None or self._complete():
            self._first = self._first or time.monotonic()
            self._news.set()

    async def _beaten(self, message: Msg) -> None:
        client = message.subject.rpartition(".")[2]
        if client not in self._joiners:
            return
        if message.data == LEFT:
            self._heard.pop(client, None)
            if self._complete():  # nobody waits for it any more
                self._news.set()
            return
        self._heard[client] = time.monotonic()
        with contextlib.suppress(ValueError, TypeError):
            if message.data:
                self._compared[client] = read_compared(message.data)

    def _joined(self, client: str, data: bytes) -> bytes | None:
        try:
            return self._joiners[client].add(data)
        except Refused as refusal:
            self.table.refuse(self.table.places[client], refusal.reason)
            raise

    async def _tell(self, client: str, refusal: Refused) -> None:
        """Let a client know that it was refused, so that an honest one can say it to its user."""
        if refusal.reason in HARMLESS or refusal.reason is Reason.VERSION:
            text = json.dumps({"reason": refusal.reason, "told": str(refusal)})
            with contextlib.suppress(nats.errors.Error):
                await self._connection.publish(self.names.refusals(client), text.encode())

    # --- rounds ------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Rounds, until the run is finished or `stop` is called."""
        beside = asyncio.create_task(self._sweep()), asyncio.create_task(self._beat())
        try:
            while not self.finished and not self.stopped:
                if await self._gathered():
                    await self._round()
            await insist(self._report)
        finally:
            for task in beside:
                task.cancel()
            if self._merges is not None:
                self._merges.close()

    def stop(self) -> None:
        """Let `serve` return after the round that is under way.

        Better than to cancel it: within nats-py, `asyncio.wait_for` of Python 3.11 can lose a cancellation.
        """
        self.stopped = True
        self._news.set()

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to come."""
        ended = self.charter.lockstep and self.charter.rules.steps and self.table.due == 0
        return self._finished or bool(ended)

    async def _gathered(self) -> bool:
        """Wait until a merge is due."""
        if self._complete() and not self._paused:
            return True
        self._news.clear()
        try:
            async with asyncio.timeout(self._left()):
                await self._news.wait()
        except TimeoutError:
            return bool(self.table.waiting) and not self._paused
        return self._complete() and not self._paused

    def _complete(self) -> bool:
        """Whether everyone expected has spoken; at the free pace who is not there is not expected."""
        now, never = time.monotonic(), -math.inf
        absent = (
            set()
            if self.charter.lockstep
            else {
                k
                for name, k in self.table.places.items()
                if now - self._heard.get(name, never) > LOST
            }
        )
        return self.table.complete(absent)

    def _left(self) -> float | None:
        """Seconds until the deadline."""
        if self.charter.rules.deadline is None or self._first is None or self._paused:
            return None
        return max(0.0, self._first + self.charter.rules.deadline - time.monotonic())

    async def _round(self) -> None:
        passed, first = not self._complete(), self._first or time.monotonic()
        entered = self.table.merge()
        self._first = None
        self._rounds += 1
        self._note(entered, passed, time.monotonic() - first)
        place = min([self._next, *self._begun.values()])
        reach("hub before store")
        await self._store.write(self.table.stored(place))
        self._stored = place
        reach("hub after store")
        await self._say()
        reach("hub after broadcast")

    def _note(self, entered: list[tuple[str, int, int]], passed: bool, waited: float) -> None:
        if self._merges is not None:
            self._merges.add(
                {
                    "version": self.table.version,
                    "step": self.table.step,
                    "time": round(time.time(), 3),
                    "waited": round(waited, 4),  # seconds, from the first upload on
                    "deadline": passed,  # whether it passed
                    "uploads": entered,  # client, step, staleness
                }
            )

    async def _say(self) -> None:
        await self._spread(self.names.model)

    async def _spread(self, subject: Callable[[int], str]) -> None:
        """Say the model."""
        data = pack_broadcast(self.table.broadcast())
        for n, piece in enumerate(cut(data, self._most, self.table.version)):
            await insist(partial(self._js.publish, subject(n), piece))
            reach("hub within broadcast")

    # --- what goes on beside -----------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Now and then: forget uploads that are in, and say how it goes."""
        swept = 1  # the first place; a purge "before 1" takes everything on servers up to 2.11
        while True:
            await asyncio.sleep(SWEEP)
            with contextlib.suppress(nats.errors.Error, TimeoutError):
                if self._stored > swept:
                    swept = self._stored
                    await self._js.purge_stream(self.names.uploads, seq=swept)
                await self._report()

    async def _beat(self) -> None:
        """Now and then a sign of life; in lockstep with whom it misses, so that what was lost is sent again."""
        while True:
            await asyncio.sleep(BEAT)
            due = self.table.due if self.charter.lockstep else 0
            missing = pack_missing(due, self.table.missing()) if due else b""
            with contextlib.suppress(nats.errors.Error):
                await self._connection.publish(self.names.pulse, missing)

    def status(self) -> dict[str, Any]:
        """How it goes, in what JSON knows."""
        now = time.monotonic()
        table = self.table
        state = "finished" if self.finished else "paused" if self._paused else "running"
        clients = {
            name: {
                "merged": int(table.merged[k]),
                "loss": float(table.losses[k]),
                "mean_loss": float(table.losses[k]) / max(int(table.merged[k]), 1),
                "bytes_up": int(table.bytes_up[k]),
                "staleness": int(table.stale[k]),
                "refused": dict(table.refused[k]),
                "state": self._state(k, name, now),
            }
            for k, name in enumerate(self.charter.clients)
        }
        return {
            "run": self.charter.rules.run,
            "state": state,
            "pace": self.charter.rules.pace,
            "version": table.version,
            "step": table.step,
            "rounds_per_second": round(self._rounds / max(now - self._started, 1e-9), 2),
            "bytes_down": table.version * table.params.nbytes,
            "candidate": against(list(self._compared.values())),
            "clients": clients,
        }

    def _state(self, k: int, name: str, now: float) -> str:
        """Of a client: present, late, lost, away or quarantined."""
        if self.table.quarantined(k):
            return "quarantined"
        if name not in self._heard:
            return "away"
        if now - self._heard[name] > LOST:
            return "lost"
        behind = self.charter.lockstep and self._first and now - self._first > LATE
        return "late" if behind and (k, self.table.due) not in self.table.waiting else "present"

    async def _report(self) -> None:
        await self._connection.publish(self.names.status, json.dumps(self.status()).encode())

    async def _ordered(self, message: Msg) -> None:
        """Take an order: pause, resume, finish, or let the clients compare themselves with this model."""
        order, answer = message.data.decode(errors="replace"), None
        if order == "pause":
            self._paused = True
        elif order == "resume":
            self._paused = False
        elif order == "finish":
            self._finished = True
        elif order != "candidate":
            answer = f"there is no order {order!r}"
        elif self.charter.algorithm.personal:
            answer = "a candidate must be a whole model, and the hub has the shared part alone"
        else:
            await self._spread(self.names.candidate)
        self._news.set()
        told = self.status() if answer is None else {"refused": answer}
        await message.respond(json.dumps(told).encode())
