"""What a client knows and does between its user and its network: it answers, learns, speaks and listens."""

import asyncio
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mainstem.base import Problem, Sample
from mainstem.engines.federate.answers import Answers
from mainstem.engines.federate.charter import Charter, at_site
from mainstem.engines.federate.faults import reach
from mainstem.engines.federate.keep import Keep
from mainstem.engines.federate.link import Link, log
from mainstem.engines.federate.member import Member
from mainstem.engines.federate.moves import Moves
from mainstem.engines.federate.wire import Upload, pack_upload, version_of
from mainstem.errors import BrokenRun

PENDING = 4096  # questions whose answer is remembered at most
PATIENCE = 10.0  # seconds for what is left to say when it leaves
BLOCK = 1024  # samples that are learnt from at once

Said = tuple[int, bytes]  # an upload: its step, and all of it

_MOVES: dict[tuple[bytes, int], Moves] = {}


def _moves(charter: Charter, problem: Problem | None) -> Moves:
    """What is compiled for a run, once for all its members in this process with the same problem."""
    key = charter.digest, id(problem)
    if key not in _MOVES:
        _MOVES[key] = Moves(charter if problem is None else at_site(charter, problem))
    return _MOVES[key]


class Site:
    """What a client knows and does, whoever waits for its network: the two kinds of learner share it."""

    def __init__(
        self,
        link: Link,
        client: str,
        folder: str | Path | None,
        problem: Problem | None,
        patient: bool,
    ):
        self.link = link
        self.member = Member(_moves(link.charter, problem), link.charter.clients.index(client))
        self.charter = self.member.charter
        self.answers = Answers(self.charter)
        self._differs = problem is not None
        self._patient = patient
        self.skipped = 0  # syncs at which too much was under way to say more
        self._owed = False  # whether the last sync was such a one
        self._open: Said | None = None  # lockstep: what was said and is not agreed on yet
        self._sending: set[asyncio.Task[None]] = set()
        self._asked: dict[bytes, Any] = {}  # the client as it was when it answered, by question
        self.pending: dict[int, bytes] = {}
        self.lost = 0  # samples that it had learnt from after its last sync, when it was killed
        self._keep = None if folder is None else Keep(Path(folder))
        if self._keep is not None:
            self.pending = self._keep.load(self.member)
            self.lost = max(0, self._keep.reached - self.step)
            if self.lost:
                told = "%s: learnt from %d samples after sample %d and did not keep it: give them again"
                log.warning(told, folder, self.lost, self.step)
        self._trim()

    @property
    def step(self) -> int:
        """How many labels it has learnt from."""
        return self.member.step

    @property
    def loss(self) -> float:
        """The sum of its losses so far."""
        return self.member.count().loss

    @property
    def mean_loss(self) -> float:
        """Their mean."""
        return self.loss / max(self.step, 1)

    @property
    def metrics(self) -> dict[str, float]:
        """Their means so far."""
        standing = self.member.count()
        return {name: total / max(standing.step, 1) for name, total in standing.metrics.items()}

    # --- answers -----------------------------------------------------------------------------------

    def predict_one(self, x: Any) -> Any:
        """The answer to x: a number, or a label."""
        return self.answers.label(self._decision(x))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """How likely each label is."""
        return self.answers.chances(self._decision(x))

    def _decision(self, x: Any) -> np.ndarray:
        self._refresh()
        shown = self.answers.shown(x)
        if len(self._asked) >= PENDING:
            self._asked.pop(next(iter(self._asked)))
        self._asked[_mark(shown)] = self.member.client
        return np.asarray(self.member.decide(shown))

    # --- learning ----------------------------------------------------------------------------------

    def _late(self, sample: Sample) -> Any:
        """The client that answered this sample's question, if it has changed up to now."""
        self._refresh()
        decided = self._asked.pop(_mark(sample.shown), None) if self._asked else None
        return None if decided is None or decided is self.member.client else decided

    def _speaks(self, step: int) -> bool:
        """Whether something must be said after this step."""
        return self.member.syncs.after(step) and not self._crowded()

    def _speaks_next(self) -> bool:
        return self._speaks(self.step + 1)

    def _learn_late(self, sample: Sample, decided: Any) -> Said | None:
        self.member.learn_late(sample, decided)
        return self._due()

    def _due(self) -> Said | None:
        """What must be said after the step just made, if it is time."""
        return self._spoken(self.member.speak() if self._speaks(self.step) else None)

    def _spoken(self, upload: Upload | None) -> Said | None:
        """After a step: store it, and keep what was said, if anything, until it is in."""
        if self._keep is not None:
            self._keep.reached = self.step
        if not self.member.syncs.after(self.step):
            return None
        if self.member.candidate is not None:
            self.link.beat = self.member.candidate.compared()._asdict()
        self._owed = upload is None
        if upload is None:
            self.skipped += 1
            return None
        goes = self.charter.lockstep or upload.body is not None
        if goes:
            self.pending[upload.step] = pack_upload(upload)
        if self._keep is not None:
            self._keep.save(self.member, self.pending)
        reach("client after save")
        return (upload.step, self.pending[upload.step]) if goes else None

    def _blocks(self, samples: Sample, count: int) -> Any:
        """`samples` in blocks, none with a sync before its end; what must be said after each."""
        done = 0
        while done < count:
            self._refresh()
            last = self.step + min(count - done, BLOCK)
            size = (self.member.syncs.next(self.step, last) or last) - self.step
            room = 1 << (size - 1).bit_length()
            block = _cut(samples, done, size, room)
            self.member.learn_many(block, size)
            done += size
            yield self._due()

    def _refresh(self) -> None:
        """At its own pace: take over the newest model, if there is one. Compare with the candidate."""
        latest = self.link.latest
        newer = latest is not None and latest.version > self.member.standing.version
        if latest is not None and newer and not self.charter.lockstep:
            self.member.listen(latest)
        asked, has = self.link.candidate, self.member.candidate
        if asked is not None and (has is None or has.version != asked.version):
            self.member.compare(asked)

    def _trim(self) -> None:
        """Forget uploads that are in, or so stale that the hub refuses them."""
        latest = self.link.latest
        if latest is not None and self.pending:
            done = latest.merged[self.member.k]
            oldest = latest.version - self.charter.rules.staleness
            self.pending = {
                step: data
                for step, data in self.pending.items()
                if step > done and version_of(data) >= oldest
            }

    # --- the network -------------------------------------------------------------------------------

    async def _resume(self) -> None:
        """Send again what was under way, and take over what has come of it."""
        for step, data in list(self.pending.items()):
            if self.charter.lockstep:
                await self._agree(step, data)
            else:
                self._send(step, data)
        latest = self.link.latest
        if latest is None:
            return
        self._catch_up(int(latest.merged[self.member.k]))
        if self.charter.lockstep and latest.step != self.step:
            return
        if latest.version > self.member.standing.version or (self._differs and self.step == 0):
            self.member.listen(latest)

    def _catch_up(self, merged: int) -> None:
        """The hub knows more of this client than it does itself: it has come without what it was."""
        if merged <= self.step:
            return
        who = f"client {self.charter.clients[self.member.k]} is merged up to sample {merged}"
        if self.charter.lockstep:
            raise BrokenRun(
                f"join: {who}: give the folder that it had, lockstep goes on from there"
            )
        log.warning("%s: it counts on from there; with a folder it would remember itself", who)
        self.member.put(self.member.client, self.member.standing._replace(step=merged))

    async def _agree(self, step: int, data: bytes) -> None:
        """Lockstep: say it, and wait for the model that was made then; who came too late is in the next."""
        self.member.listen(await self.link.agree(step, data))
        self._open = None
        self._trim()
        reach("client after listen")

    def _goes(self, said: Said | None) -> None:
        """Put what was said on its way."""
        if said is not None and self.charter.lockstep:
            self._open = said
        elif said is not None:
            self._send(*said)

    async def _settle(self) -> None:
        """Wait as long as the pace asks for it."""
        if self._open is not None:
            await self._agree(*self._open)
        elif not self.charter.lockstep:
            await asyncio.sleep(0)  # else a loop that only learns would leave its network no turn
            while self._patient and self._crowded() and not self.link.away:
                await self.link.news()

    async def _exchange(self, said: Said | None) -> None:
        self._goes(said)
        await self._settle()

    def _crowded(self) -> bool:
        """At its own pace: whether as much is under way as may be."""
        self._trim()
        return not self.charter.lockstep and len(self.pending) >= self.charter.rules.pending

    def _send(self, step: int, data: bytes) -> None:
        """Let it go, until it is in."""
        task = asyncio.ensure_future(self.link.send(step, data, lambda: step in self.pending))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _flush(self) -> None:
        """Before leaving: say what is owed once there is room, and wait until the broker has it."""
        end = time.monotonic() + PATIENCE
        while self._owed and self.member.syncs.after(self.step) and time.monotonic() < end:
            await asyncio.sleep(0.02)
            if not self._crowded():
                await self._exchange(self._due())
        kept = self._keep is not None and not self.link.connected  # is sent when it comes back
        if self._sending and not kept:
            await asyncio.wait(self._sending, timeout=max(0.0, end - time.monotonic()))

    async def _leave(self) -> None:
        await self._flush()
        await self.link.close()
        if self._keep is not None:
            self._keep.save(self.member, self.pending)
            self._keep.close()


def _mark(shown: Any) -> bytes:
    """What tells one question from another."""
    if isinstance(shown, np.ndarray):
        return shown.tobytes()
    parts = shown if isinstance(shown, tuple) else (shown,)
    return b"".join(np.asarray(part).tobytes() for part in parts)


def _cut(samples: Sample, first: int, size: int, room: int) -> Sample:
    """Some of the samples, and copies of the last up to `room`, so that few shapes are compiled."""

    def one(x: np.ndarray) -> np.ndarray:
        part = x[first : first + size]
        return (
            part if room == size else np.concatenate([part, np.repeat(part[-1:], room - size, 0)])
        )

    return jax.tree.map(one, samples)
