"""The aggregator: checks uploads, collects them until a merge is due, and merges them. No network.

An upload changes nothing before it has passed every check. The merged state is one value that can be stored and
restored.
"""

import copy
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem.base import Arrivals
from mainstem.engines.federate.hub.carried_over import carried_over
from mainstem.engines.federate.hub.client_records import ClientRecords
from mainstem.engines.federate.hub.merging import first_state, merging
from mainstem.engines.federate.hub.upload_format import UploadFormat
from mainstem.engines.federate.protocol.messages import (
    LAST_STEP,
    UPLOAD_HEADER,
    Broadcast,
    Reason,
    Refused,
    Upload,
    read_upload,
)
from mainstem.engines.federate.protocol.run_document import MAX_FIRST_SYNC, RunDocument
from mainstem.engines.federate.protocol.state_format import Bundle, pack
from mainstem.engines.federate.protocol.sync_steps import SyncSteps


class Accepted(NamedTuple):
    """An upload that has passed all checks, decoded."""

    upload: Upload  # without its encoded body
    k: int  # index of its client
    body: np.ndarray | None
    sequence: int  # in the upload stream


def norm(body: np.ndarray) -> float:
    """The length of a message; finite, as its numbers are."""
    with np.errstate(over="ignore"):
        return min(float(np.linalg.norm(body)), float(np.finfo(body.dtype).max))


class Aggregator:
    """The server's state, the merged and received steps of each client, and the uploads for the next merge."""

    def __init__(self, document: RunDocument):
        self._begin(document)

    def _begin(self, document: RunDocument) -> None:
        """Begins at the first state of a run."""
        self.document = document
        clients = len(document.clients)
        self.indices = {name: k for k, name in enumerate(document.clients)}
        self.epoch = 0
        self.version = 0
        self.step = 0  # t of the last merge
        self.records = ClientRecords(clients, document.rules.strikes)
        self.waiting: dict[tuple[int, int], Accepted] = {}  # by client and step
        self.uploaded: Counter[int] = Counter()  # the uploads that wait, of each client with any
        # The largest `pending` that there ever was: clients may learn late that it is smaller now.
        self.most_pending = 0
        self._take_rules(document)
        self._guards = document.algorithm.guards
        self._nobody = np.zeros((clients, 2), np.int32)
        self._based = document.algorithm.collect.based
        self._syncs = SyncSteps(document.algorithm.sync)
        self._due = -1, 0  # (a step, the next sync step after it)
        with document.precision():
            self._compiled = merging(document)
            self.server = self._compiled.started(document.start)
            self.model = np.asarray(self._compiled.current(self.server))
        self.bases = {
            0: self.model
        }  # recent broadcasts by version, for algorithms that need them to merge

    def _take_rules(self, document: RunDocument) -> None:
        """Takes over the rules of a document; what is computed does not depend on them."""
        self.document = document
        self.most_pending = max(self.most_pending, document.rules.pending)
        self._format = UploadFormat(document)
        self._quorum = document.quorum
        self.records.limit_strikes(document.rules.strikes)

    # --- uploads -----------------------------------------------------------------------------------

    def is_heard(self, k: int, session: int, present: bool) -> bool:
        """Whether a process with the name of client k is heard; `present`: the one that was heard is there."""
        other = present and session != self.records.sessions[k]
        first = self.document.rules.twice == "first" or session < self.records.sessions[k]
        return not (other and first)

    def accept(self, client: str, data: bytes, sequence: int, present: bool = False) -> Upload:
        """Checks an upload of `client` and adds it to the next merge. Raises `Refused`, which is counted."""
        k = self.indices[client]
        try:
            if k in self.records.quarantined:
                raise Refused(Reason.QUARANTINED)
            upload = read_upload(data)
            self._format.check(upload, k)
            if upload.epoch != self.epoch:
                raise Refused(Reason.EPOCH, f"{upload.epoch}, now {self.epoch}")
            if not self.is_heard(k, upload.session, present):
                raise Refused(Reason.SESSION, f"another process is client {client}")
            self._check_step(upload, k)
            body = self._format.decoded(upload)
        except Refused as refusal:
            self.records.refuse(k, refusal.reason)
            raise
        self.records.sessions[k] = upload.session
        self.waiting[k, upload.step] = Accepted(upload._replace(body=None), k, body, sequence)
        self.uploaded[k] += 1
        return upload

    def _check_step(self, upload: Upload, k: int) -> None:
        if upload.step <= self.records.received[k] or (k, upload.step) in self.waiting:
            raise Refused(Reason.REPLAYED, f"step {upload.step}")
        if upload.version > self.version:
            raise Refused(Reason.VERSION, f"{upload.version}, the newest is {self.version}")
        unknown = self._based and upload.version not in self.bases
        if self.version - upload.version > self.document.rules.staleness or unknown:
            raise Refused(Reason.STALE, f"version {upload.version}, now {self.version}")
        if self.uploaded[k] >= self.most_pending:
            raise Refused(Reason.PENDING, f"{self.uploaded[k]} of this client wait")
        if self.document.lockstep and upload.step == self.due:
            return
        if upload.step > LAST_STEP or not self._syncs.after(upload.step):
            raise Refused(Reason.ROUND, f"step {upload.step} is not a sync step")
        if self.document.lockstep and upload.step > self.due:
            raise Refused(Reason.ROUND, f"step {upload.step}, step {self.due} is due")

    @property
    def most_bytes(self) -> int:
        """The size of the largest upload."""
        return UPLOAD_HEADER + self.document.upload_bytes

    # --- rounds ------------------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """The next sync step, in lockstep; 0 if there is none."""
        if self._due[0] != self.step:
            self._due = self.step, self.next_sync(self.step)
        return self._due[1]

    def next_sync(self, step: int) -> int:
        """The next sync step after `step`; 0 if there is none."""
        return self._syncs.next(step, self.document.rules.steps or step + MAX_FIRST_SYNC)

    def has_quorum(self) -> bool:
        """Whether uploads of enough clients are waiting for a merge."""
        if not self.uploaded:
            return False
        wanted = min(self._quorum, len(self.indices) - len(self.records.quarantined))
        return len(self.uploaded) >= wanted

    def is_complete(self, absent: Set[int] = frozenset()) -> bool:
        """Whether all expected uploads are in. None is expected of quarantined clients, nor of those `absent`."""
        if not self.has_quorum():
            return False
        everyone, quarantined, gather = (
            len(self.document.clients),
            self.records.quarantined,
            self.document.rules.gather,
        )
        if self.document.lockstep:
            enough = len(self.waiting) >= everyone - len(quarantined)
            present = (
                (k, self.due) in self.waiting for k in range(everyone) if k not in quarantined
            )
            return enough and all(present)
        if gather is not None:
            return len(self.uploaded) >= min(gather, everyone - len(quarantined))
        return len(self.uploaded) >= everyone - len(quarantined | absent)

    def stopped(self) -> np.ndarray:
        """How many messages of each client the guard has shortened, and how many it has left out."""
        return np.asarray(self.server.memory.stopped) if self._guards else self._nobody

    def missing(self) -> np.ndarray:
        """For each client, whether its upload of the step that is due is missing. In lockstep."""
        everyone = range(len(self.document.clients))
        return np.array(
            [
                k not in self.records.quarantined and (k, self.due) not in self.waiting
                for k in everyone
            ]
        )

    def begin_epoch(self, epoch: int, step: int) -> None:
        """Goes on in a new epoch. In lockstep, merges that were lost are skipped: `step` is due next."""
        self.epoch = epoch
        if self.document.lockstep and step - 1 > self.step:
            self.step = step - 1
            self.waiting = {key: row for key, row in self.waiting.items() if key[1] >= step}
            self.uploaded = Counter(k for k, _ in self.waiting)

    def merge(self) -> list[tuple[str, int, int]]:
        """Merges the waiting uploads in the order of the roster. Returns client, step and staleness of each."""
        document = self.document
        self.step = self.due if document.lockstep else self.step + 1
        rows = [self.waiting[key] for key in sorted(self.waiting)]
        with document.precision():
            arrivals = self._arrivals(rows)
            self.server, params = self._compiled.merge(self.server, arrivals, np.int32(self.step))
        entered = [self._count(row) for row in rows]  # while the merge is computed
        self.waiting, self.uploaded = {}, Counter()
        self.model = np.asarray(params)
        self.version += 1
        self._store_base()
        return entered

    def _count(self, row: Accepted) -> tuple[str, int, int]:
        name, upload = self.document.clients[row.k], row.upload
        nbytes = None if row.body is None else self.document.upload_bytes
        self.records.count(row.k, upload, self.version, nbytes)
        if row.body is not None:
            self.records.norm[row.k] = norm(row.body)
        return name, upload.step, self.version - upload.version

    def go_back(self, server: Any, clients: Sequence[str]) -> list[tuple[str, int, int]]:
        """Continues with an earlier state of the server, of this roster. The guard keeps what it has learnt since.

        Uploads that wait were learnt with the models in between: they are counted, returned, and not merged.
        """
        old = {name: k for k, name in enumerate(clients)}
        rows = [(k, old[name]) for name, k in self.indices.items() if name in old]
        with self.document.precision():
            server = carried_over(server, self.server, self._shapes, rows)
        dropped = [self._count(row) for row in self.waiting.values()]
        self.waiting, self.uploaded = {}, Counter()
        self.server = self.server._replace(state=server.state) if self._guards else server
        with self.document.precision():
            self.model = np.asarray(self._compiled.current(self.server))
        self.records.watch.restart()
        self._store_base()
        return dropped

    def _store_base(self) -> None:
        if self._based:
            oldest = self.version - self.document.rules.staleness
            self.bases = {v: each for v, each in self.bases.items() if v >= oldest}
            self.bases[self.version] = self.document.decoded(self._params)

    def add_base(self, broadcast: Broadcast) -> None:
        """Keeps a broadcast that was published before this hub was restarted."""
        oldest = self.version - self.document.rules.staleness
        if oldest <= broadcast.version < self.version:
            self.bases[broadcast.version] = self.document.decoded(broadcast.params)

    def broadcast(self) -> Broadcast:
        """The message that carries the merged model."""
        steps = self.records.merged.copy(), self.records.received.copy()
        now = self.document.digest, self.version, self.step
        return Broadcast(*now, *steps, self._params, self.epoch, self.document.revision)

    @property
    def _params(self) -> bytes:
        """The model as it is broadcast."""
        codec = self.document.algorithm.downlink
        if codec is None:
            return self.model.tobytes()
        with self.document.precision():
            code = self._compiled.encode(self.model, np.int32(self.step))
        return codec.pack(jax.tree.map(np.asarray, code))

    def _arrivals(self, rows: list[Accepted]) -> Arrivals:
        """The bodies as arrays: a row for each client; twice as many rows if that is not enough, and so on."""
        size, clients = self.document.message, len(self.document.clients)
        count = clients
        while count < len(rows):
            count *= 2
        bodies = np.zeros((count, size), self.document.dtype)
        weights = np.zeros(count, self.document.dtype)
        client, sent = np.zeros(count, np.int32), np.zeros(count, np.int32)
        shape = count, self.document.broadcast
        base = np.zeros(shape, self.document.dtype) if self._based else None
        lone = len(self.uploaded) == len(rows)
        for n, row in enumerate(rows):
            index = row.k if lone else n  # as in the simulator: client k in row k
            client[index], sent[index] = row.k, row.upload.step
            if row.body is not None:
                bodies[index], weights[index] = row.body, row.upload.weight
            if base is not None:
                base[index] = self.bases[row.upload.version]
        return Arrivals(bodies, weights, client, sent, base)  # type: ignore[arg-type]

    # --- changes -----------------------------------------------------------------------------------

    def change(self, document: RunDocument, rename: Mapping[str, str] = {}) -> None:
        """Continues with another revision of the document; `rename`: new names by old ones."""
        if document.clients == self.document.clients and document.computes_as(self.document):
            self._take_rules(document)
            return
        before = copy.copy(self)
        try:
            self._begin(document)
            self._carry_over(before, rename)
        except BaseException:
            self.__dict__ = before.__dict__
            raise

    def _carry_over(self, before: "Aggregator", rename: Mapping[str, str]) -> None:
        old = {rename.get(name, name): k for name, k in before.indices.items()}
        rows = [(k, old[name]) for name, k in self.indices.items() if name in old]
        with self.document.precision():
            server = carried_over(before.server, self.server, self._shapes, rows)
            self.server, self.model = server, np.asarray(self._compiled.current(server))
        self.records.take(before.records, rows)
        if self.document.lockstep:  # those that come begin where the others are
            added = set(self.indices.values()) - {new for new, _ in rows}
            self.records.received[list(added)] = before.step
        self.epoch, self.version, self.step = before.epoch, before.version, before.step
        self.most_pending = max(self.most_pending, before.most_pending)
        self.bases = before.bases
        places = {was: new for new, was in rows}
        for (was, step), row in before.waiting.items():
            if was in places:
                self.waiting[places[was], step] = row._replace(k=places[was])
        self.uploaded = Counter(k for k, _ in self.waiting)

    def _shapes(self, clients: int) -> Any:
        """The shapes of the server's state for so many clients."""
        return first_state(self.document, clients)

    # --- snapshots ---------------------------------------------------------------------------------

    def first_waiting(self, following: int) -> int:
        """The sequence of the first upload that is not merged; `following` if none waits."""
        return min((row.sequence for row in self.waiting.values()), default=following)

    def snapshot(self, sequence: int, unfinished: bool = False) -> bytes:
        """The state as bytes. All uploads before `sequence` in the upload stream are merged.

        `unfinished`: chunks of an upload are before that sequence, and its last ones have not come.
        """
        values = {
            "document": self.document.stored,
            "epoch": self.epoch,
            "version": self.version,
            "step": self.step,
            "sequence": sequence,
            "unfinished": unfinished,
            "pending": self.most_pending,
            "refused": [dict(each) for each in self.records.refused],
        }
        leaves = map(np.asarray, jax.tree.leaves(self.server))
        arrays = {f"server {n}": leaf for n, leaf in enumerate(leaves)}
        return pack(values, arrays | self.records.arrays())

    def restore(self, found: Bundle, document: RunDocument) -> tuple[int, bool]:
        """Restores a snapshot and its document. Returns the sequence to read from, and whether an upload was
        unfinished there.
        """
        self._begin(document)
        leaves, tree = jax.tree.flatten(self.server)
        stored = [found.arrays[f"server {n}"] for n in range(len(leaves))]
        with self.document.precision():
            self.server = jax.tree.unflatten(tree, [jax.numpy.asarray(each) for each in stored])
            self.model = np.asarray(self._compiled.current(self.server))
        self.records.restore(found.arrays, found.values["refused"])
        self.epoch, self.version = found.values["epoch"], found.values["version"]
        self.step, self.most_pending = found.values["step"], found.values["pending"]
        self.bases = {}
        self._store_base()
        return int(found.values["sequence"]), bool(found.values["unfinished"])
