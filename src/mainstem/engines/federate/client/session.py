"""A client's session in a run: when to upload, uploads until they are merged, and restarts.

The blocking and the async learner are facades of it. Predictions may come from another thread than learning,
and the uplink may live in a third: the state has a lock of its own, and `_lock` guards what the session
remembers.
"""

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mainstem.base import Problem, Sample
from mainstem.engines.federate import event_log, faults, full_disk
from mainstem.engines.federate.client.comparing import Alone, learning_alone
from mainstem.engines.federate.client.kernels import own_document, shared_kernels
from mainstem.engines.federate.client.pending_uploads import PendingUploads
from mainstem.engines.federate.client.persistence import Persistence
from mainstem.engines.federate.client.predictions import Predictions
from mainstem.engines.federate.client.state import BLOCK, ClientState, Progress, block
from mainstem.engines.federate.client.uplink import Uplink
from mainstem.engines.federate.protocol.heartbeats import Position
from mainstem.engines.federate.protocol.messages import (
    Broadcast,
    Upload,
    pack_upload,
)
from mainstem.engines.federate.protocol.run_document import (
    MAX_FIRST_SYNC,
    encode,
)
from mainstem.engines.federate.protocol.sync_steps import SyncSteps
from mainstem.engines.federate.transport import tasks
from mainstem.errors import BrokenRun
from mainstem.parts.step import AnyStep
from mainstem.streams.sample_format import SampleFormat

CLOSE_TIMEOUT = 10.0  # seconds to send what is pending when the session ends
CHECK = 1.0  # seconds between two looks for pending uploads that nobody sends
SAVE = 1.0  # seconds between two stored states while syncs are skipped

Outgoing = tuple[int, bytes]  # an encoded upload, and its step


class Session:
    """One client's part in a run."""

    def __init__(
        self,
        uplink: Uplink,
        client: str,
        folder: str | Path | None,
        problem: Problem | None,
        patient: bool,
        alone: AnyStep | None,
    ):
        if uplink.ended:
            raise BrokenRun(uplink.ended)
        self.uplink = uplink
        self.client = client
        self._problem = problem
        self._followed = uplink.document
        k = uplink.document.clients.index(client)
        self.state = ClientState(shared_kernels(uplink.document, problem), k)
        self.document = self.state.document
        if alone is not None:
            learning = learning_alone(self.document, alone)
            self.state.alone = Alone(shared_kernels(uplink.document, problem, learning), k)
        source, rules = self.document.source, self.document.rules
        self.format = SampleFormat(source, self.document.dtype, rules.features, rules.labels)
        self.patient = patient
        self.skipped = 0  # syncs without an upload because too many were pending
        self.lost = 0  # samples learnt after the last snapshot, before a kill
        self.pending = PendingUploads(uplink, client)
        self.open: int | None = (
            None  # in lockstep: the step of an upload whose broadcast has not come
        )
        self._owed = False  # whether the last sync was skipped
        self._warned = False  # that the model that it learns alone was not finite
        self._saved = 0.0  # when its state was stored last
        self._caught_up = False  # with what the hub has received of it
        self._lock = threading.RLock()
        self._checking: asyncio.Task[None] | None = None
        self._predictions = Predictions(self.state.model_of)
        self._persistence = None if folder is None else Persistence(Path(folder))
        self._written = full_disk.Writer(f"{folder}: the client's state")
        try:
            self._restore()
        except BaseException:
            self._release()
            raise

    def _restore(self) -> None:
        if self._persistence is not None:
            stored = self._persistence.load(self.state)
            self.uplink.session = max(self.uplink.session, self.state.session + 1)
            self.pending.restore(stored, self.uplink.session)
            self._compare()
            self.lost = max(0, self._persistence.reached - self.step)
            if self.lost:
                text = f"{self.lost} samples after sample {self.step} were learnt but not stored: give them again"
                self._log("samples_lost", f"{self._persistence.folder}: {text}")
            self._persistence.save_document(encode(self.uplink.document))
        self.state.session = self.uplink.session
        self._drop_received()

    def _log(self, event: str, text: str) -> None:
        event_log.warning(event, text, run=self.document.rules.run, client=self.client)

    @property
    def step(self) -> int:
        """Samples it has learnt from."""
        return self.state.step

    @property
    def _latest(self) -> Broadcast | None:
        """The newest broadcast, if it is of the roster that this client follows."""
        latest = self.uplink.latest
        return None if latest is None or latest.revision != self._followed.revision else latest

    # --- predictions -------------------------------------------------------------------------------

    def decision(self, x: Any) -> np.ndarray:
        """The decision for x. Remembers the model, in case it has changed when the label comes."""
        self._refresh()
        shown = self.format.shown(x)
        decision, changes, client = self.state.decide(shown)
        with self._lock:
            self._predictions.add(_key(shown), changes, client)
        return decision

    def late_model(self, sample: Sample) -> Any:
        """The model that made the prediction for this sample, if the client has changed since; else None."""
        self._refresh()
        with self._lock:
            if not self._predictions:
                return None
            _ = self.state.client  # applies a broadcast that has come
            return self._predictions.pop(_key(sample.shown), self.state.changes)

    # --- learning ----------------------------------------------------------------------------------

    def uploads_next(self) -> bool:
        """Whether an upload follows the next step."""
        return self._uploads_after(self.step + 1)

    def _uploads_after(self, step: int) -> bool:
        return self.state.sync_steps.after(step) and not self._is_full()

    def learn_late(self, sample: Sample, params: Any) -> Outgoing | None:
        """Learns from a sample that an earlier model predicted. Returns the upload to send, if any."""
        self.state.learn_late(sample, params)
        return self._upload_if_due()

    def learn_blocks(self, samples: Sample, count: int) -> Iterator[Outgoing | None]:
        """Learns from `count` samples in blocks that end at syncs. Yields the upload after each, if any."""
        done = 0
        while done < count:
            self._refresh()
            last = self.step + min(count - done, BLOCK)
            size = (self.state.sync_steps.next(self.step, last) or last) - self.step
            room = 1 << (size - 1).bit_length()
            self.state.learn_many(block(samples, done, size, room), size)
            done += size
            yield self._upload_if_due()

    def _upload_if_due(self) -> Outgoing | None:
        due = self._uploads_after(self.step)
        return self.stepped(self.state.make_upload() if due else None)

    def stepped(self, upload: Upload | None) -> Outgoing | None:
        """Stores the state after a step, and the upload until it is merged. Returns the upload to send, if any."""
        if self._persistence is not None:
            self._persistence.reached = self.step
        if not self.state.sync_steps.after(self.step):
            return None
        self._compare()
        self._owed = upload is None
        if upload is None:
            self.skipped += 1
            if time.monotonic() - self._saved > SAVE:
                self._save()
            return None
        sends = self.document.lockstep or upload.body is not None
        data = pack_upload(upload)
        if sends:
            self.pending.add(upload.step, data)
        self._save()
        faults.reach("client after save")
        return (upload.step, data) if sends else None

    def _compare(self) -> None:
        """Notes the comparisons with other models, for its heartbeats."""
        candidate, alone = self.state.candidate, self.state.alone
        if candidate is not None:
            self.uplink.compared = candidate.compared()
        if alone is None:
            return
        self.uplink.alone = alone.compared()
        if alone.restarts and not self._warned:
            self._warned = True
            text = "the loss of the model that it learns alone is not finite: it begins anew; give a smaller step"
            self._log("alone_not_finite", text)

    def _save(self) -> None:
        """Stores the state and the pending uploads, if it has a folder."""
        if self._persistence is not None:
            self._written(partial(self._persistence.save, self.state, self.pending.by_step()))
            self._saved = time.monotonic()

    def _refresh(self) -> None:
        """Takes the newest broadcast, at the free pace; and the newest candidate."""
        if self.uplink.ended:
            raise BrokenRun(self.uplink.ended)
        self._follow_epoch()
        latest = self._latest
        newer = latest is not None and latest.age > self.state.age
        if latest is not None and newer and not self.document.lockstep:
            if not self._caught_up:
                self._catch_up(int(latest.received[self.state.k]))
            if not self._sends_first(latest):
                self.state.receive(latest)
        offered, current = self.uplink.candidate, self.state.candidate
        if offered is not None and (current is None or current.version != offered.version):
            self.state.compare_with(offered)

    def _sends_first(self, latest: Broadcast) -> bool:
        """Whether it sends what it has learnt before it takes a newer model, which would replace that.

        So it is if it has skipped syncs, as while it was offline; unless the hub would refuse it as stale.
        """
        behind = latest.version - self.state.progress.version
        same = latest.epoch == self.state.progress.epoch
        return self._owed and same and behind <= self.document.rules.staleness

    def _follow_epoch(self) -> None:
        """Goes over to a later epoch of the run, in which the uploads that are pending are sent again."""
        self._follow_document()
        latest = self._latest
        if latest is None or latest.epoch <= self.state.progress.epoch:
            return
        with self._lock:
            before = self.state.progress
            self.state.enter(latest)
            self.pending.enter(*latest.age)
        if before.epoch:
            lost = before.version > latest.version
            self.uplink.had = before.version if lost else 0
            had = f", this client had merge {before.version}" if lost else ""
            text = f"the run continues in a new epoch at merge {latest.version}{had}; "
            self._log("new_epoch", f"{text}{len(self.pending)} pending uploads are sent again")

    def _follow_document(self) -> None:
        """Goes over to a later revision of the run document."""
        newest = self.uplink.document
        if newest is self._followed or self.client not in newest.clients:
            return
        with self._lock:
            before, self._followed, k = self.state, newest, newest.clients.index(self.client)
            if newest.computes_as(self.document):
                before.follow(own_document(newest, self._problem), k)
            else:
                self.state = self._changed(
                    before, ClientState(shared_kernels(newest, self._problem), k)
                )
            self.document = self.state.document
            if self._persistence is not None:
                self._written(partial(self._persistence.save_document, encode(newest)))
        self._log(
            "document_changed", f"goes on with revision {newest.revision} of the run document"
        )

    def _changed(self, before: ClientState, after: ClientState) -> ClientState:
        """The state `before`, with the algorithm and the roster of `after`."""
        client, progress = before.client, before.totals()
        if _shapes(after.client) != _shapes(client):
            raise BrokenRun(
                f"{after.document.rules.run}: with its new rules this client's state has another size: join again"
            )
        after.restore(client, progress)
        after.session, after.alone = before.session, before.alone
        return after

    def _drop_received(self) -> None:
        """Forgets uploads that the hub has received, or so stale that the hub would refuse them."""
        latest = self._latest
        if latest is not None:
            oldest = latest.version - self.document.rules.staleness
            self.pending.drop(latest.received[self.state.k], oldest)

    def _is_full(self) -> bool:
        """At the free pace: whether as many uploads are pending as may be."""
        if self.document.lockstep:
            return False
        if len(self.pending) < self.document.rules.pending:
            return False
        self._drop_received()
        return len(self.pending) >= self.document.rules.pending

    # --- network -----------------------------------------------------------------------------------

    async def resume(self) -> None:
        """Says that it is there, sends pending uploads again, and takes the newest broadcast."""
        self.uplink.announce()
        self._follow_epoch()
        self._say_position()
        if self.document.lockstep:
            for step in self.pending.by_step():
                await self._sync(step)
        else:
            self.pending.send()
            self._checking = tasks.start(self._keep_sending(), "uploads that are pending")
        latest = self._latest
        if latest is None:
            return
        self._catch_up(int(latest.received[self.state.k]))
        if self.document.lockstep and latest.step != self.step:
            return
        newer = latest.age > self.state.age
        if newer or (self._problem is not None and self.step == 0):
            self.state.receive(latest)

    def _catch_up(self, received: int) -> None:
        """Continues at the newest step that the hub has received, if this client has lost its state or a part.

        Its sums of losses begin anew: the hub would count those of an older state twice.
        """
        self._caught_up = True
        if received <= self.step:
            return
        who = f"client {self.client} is known up to sample {received}"
        latest = self._latest
        came = self.step == 0 and latest is not None and latest.merged[self.state.k] == 0
        if self.document.lockstep and not came:
            raise BrokenRun(
                f"join: {who}: give the folder that it had, lockstep continues from there"
            )
        if not came:
            self._log(
                "state_lost", f"{who}: it continues from there, without what it has learnt since"
            )
        progress = self.state.progress._replace(step=received, loss=0.0, metrics={}, since=received)
        self.state.restore(self.state.client, progress)

    def _say_position(self) -> None:
        """Notes where this client is, for its heartbeats."""
        self.uplink.position = partial(self._position, self.state.progress, self.pending.first)

    def _position(self, progress: Progress, waiting: int) -> Position:
        """Where a client is that has come so far, and whose first pending upload is of the step `waiting`."""
        coming = 0
        if self.document.lockstep:
            # Not those of the state: heartbeats are sent by another thread.
            syncs = SyncSteps(self.document.algorithm.sync)
            last = self.document.rules.steps or progress.step + MAX_FIRST_SYNC
            coming = waiting or syncs.next(progress.step, last)
        return Position(progress.epoch, progress.version, coming)

    async def _sync(self, step: int) -> None:
        """Lockstep: sends the upload of a step, and waits for a broadcast of that step or a later one."""
        newest = await self.uplink.sync(step, self.pending[step], self.state.progress.epoch)
        while newest.step < step:  # the hub was set back: once more in its new epoch
            self._follow_epoch()
            self._say_position()
            newest = await self.uplink.sync(step, self.pending[step], self.state.progress.epoch)
        self._follow_epoch()
        while (latest := self._latest) is None:  # the roster has just changed
            await self.uplink.change()
            self._follow_epoch()
        self.state.receive(latest)
        self.open = None
        self._drop_received()
        self._say_position()
        faults.reach("client after listen")

    def dispatch(self, outgoing: Outgoing | None) -> None:
        """Starts to send an upload."""
        if outgoing is not None and self.document.lockstep:
            self.open = outgoing[0]
        elif outgoing is not None:
            self.pending.send()

    async def settle(self) -> None:
        """Waits as long as the pace asks for it."""
        if self.open is not None:
            await self._sync(self.open)
        elif not self.document.lockstep:
            await asyncio.sleep(0)  # lets the network run between two steps of a busy loop
            while self.patient and self._is_full() and not self.uplink.hub_is_away:
                await self.uplink.change()

    async def exchange(self, outgoing: Outgoing | None) -> None:
        """Sends an upload, and waits as long as the pace asks for it."""
        self.dispatch(outgoing)
        await self.settle()

    async def _keep_sending(self) -> None:
        while True:
            await asyncio.sleep(CHECK)
            self._follow_epoch()
            self._say_position()
            self.pending.send()

    async def close(self) -> None:
        """Sends what is pending, stores the state and disconnects."""
        try:
            await self._flush()
            self._compare()
            await self.uplink.close()
            self._drop_received()
            self._save()
            self._report_unsent()
            if self.state.failure is not None:
                event_log.warning("not_finite", str(self.state.failure))
        finally:
            self._release()

    async def abandon(self) -> None:
        """Disconnects without sending or storing anything: the session could not be opened."""
        await self.uplink.close()
        self._release()

    async def _flush(self) -> None:
        """Makes up for a skipped sync once there is room, and waits until the server has all uploads."""
        end = time.monotonic() + CLOSE_TIMEOUT
        while self._owed and self.state.sync_steps.after(self.step) and time.monotonic() < end:
            await asyncio.sleep(0.02)
            if not self._is_full():
                await self.exchange(self._upload_if_due())
        stored = self._persistence is not None and not self.uplink.connected  # sent on return
        if not stored:
            await self.pending.wait_until_sent(max(0.0, end - time.monotonic()))

    def _report_unsent(self) -> None:
        """Logs that uploads have not reached the server: they are sent when the client joins again."""
        unsent = len(self.pending.sending)
        if unsent and not self.document.lockstep:
            kept = (
                "they are lost" if self._persistence is None else "its folder has them: join again"
            )
            self._log("not_sent", f"{unsent} uploads have not reached the server: {kept}")

    def _release(self) -> None:
        """Ends its task and unlocks the folder."""
        if self._checking is not None:
            self._checking.cancel()
        if self._persistence is not None:
            self._persistence.close()
            self._persistence = None


def _key(shown: Any) -> bytes:
    """Identifies what was shown."""
    if isinstance(shown, np.ndarray):
        return shown.tobytes()
    parts = shown if isinstance(shown, tuple) else (shown,)
    return b"".join(np.asarray(part).tobytes() for part in parts)


def _shapes(client: Any) -> Any:
    """The tree of a state, with the shapes and types of its arrays."""
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), client)
