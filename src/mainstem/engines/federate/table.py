"""The hub's side of a run, without a network: what came in is checked, waits, and is merged.

Nothing touches the server's state before it has passed every check. What is merged, and how far each client
is, is one value that can be stored and restored.
"""

import math
from collections import Counter
from collections.abc import Callable, Set
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem import random
from mainstem.base import Arrivals
from mainstem.engines import meeting
from mainstem.engines.federate.bundle import Bundle, pack, unpack
from mainstem.engines.federate.charter import FAR, Charter
from mainstem.engines.federate.syncs import Syncs
from mainstem.engines.federate.wire import OVERHEAD, Broadcast, Reason, Refused, Upload, read_upload
from mainstem.errors import BrokenRun

HARMLESS = {
    Reason.REPLAYED,
    Reason.STALE,
}  # what an honest client that was killed or cut off can send

OF_CLIENTS = (
    "merged",
    "losses",
    "said",
    "bytes_up",
    "stale",
    "strikes",
)  # a number for each, stored
LAST = 2**31 - 1  # what a step can be: algorithms count in 32 bits


class Waiting(NamedTuple):
    """An upload that has passed, and where it lies on the broker."""

    upload: Upload  # without its bytes, which are large and not needed any more
    body: np.ndarray | None
    place: int


class Table:
    """The server's state, who is merged how far, and what waits."""

    def __init__(self, charter: Charter):
        self.charter = charter
        clients = len(charter.clients)
        self.places = {name: k for k, name in enumerate(charter.clients)}
        self.version = 0
        self.step = 0  # t of the last merge
        self.merged = np.zeros(clients, np.int64)  # each client's newest step that is in
        self.losses = np.zeros(clients)  # each client's, up to that step
        self.said = np.zeros(
            clients
        )  # the sum that it said last: less than before if it began anew
        self.bytes_up = np.zeros(clients, np.int64)
        self.stale = np.zeros(clients, np.int64)  # how old the model was that its last upload is of
        self.refused: list[Counter[str]] = [Counter() for _ in charter.clients]
        self.strikes = np.zeros(clients, np.int64)
        self._struck: frozenset[int] = frozenset()  # who is quarantined
        self.waiting: dict[tuple[int, int], Waiting] = {}  # by client and step
        self._syncs = Syncs(charter.algorithm.sync)
        self._due = -1, 0  # after which step, and when
        self._finite = float(np.finfo(charter.dtype).max)
        self._key = random.root(charter.rules.seed)
        with charter.precise():
            self._start = jax.jit(self._started)
            self._merge = jax.jit(self._merged)
            self._decode = self._decoder()
            self._said = jax.jit(lambda server: meeting.said_now(charter, server))
            self.server = self._start()
            self.params = np.asarray(self._said(self.server))
        self.bases = {
            0: self.params
        }  # broadcasts that clients may still hold, where the server asks

    # --- what came in ------------------------------------------------------------------------------

    def take(self, client: str, data: bytes, place: int) -> Upload:
        """Check what lies at `place` and came from `client`; it waits then. Raises `Refused`, counted."""
        k = self.places[client]
        try:
            if self.quarantined(k):
                raise Refused(Reason.QUARANTINED)
            upload = read_upload(data)
            self._belongs(upload, k)
            self._timely(upload, k)
            body = None if upload.body is None else self._decoded(upload)
        except Refused as refusal:
            self.refuse(k, refusal.reason)
            raise
        self.waiting[k, upload.step] = Waiting(upload._replace(body=None), body, place)
        return upload

    def refuse(self, k: int, reason: Reason) -> None:
        """Count a refusal of client k."""
        self.refused[k][reason] += 1
        if reason not in HARMLESS:
            self.strikes[k] += 1
            self._quarantine()

    def _quarantine(self) -> None:
        limit = self.charter.rules.strikes
        self._struck = frozenset(np.flatnonzero(self.strikes >= limit).tolist())

    def _belongs(self, upload: Upload, k: int) -> None:
        charter = self.charter
        if upload.run != charter.digest:
            raise Refused(Reason.RUN)
        if upload.client != k:
            raise Refused(Reason.CLIENT, f"says it is {upload.client}")
        if upload.codec != charter.codec:
            raise Refused(Reason.CODEC)
        fine = math.isfinite(upload.loss) and math.isfinite(upload.weight)
        if not fine or upload.weight < 0 or (upload.weight > 0) != (upload.body is not None):
            raise Refused(Reason.NOT_FINITE if not fine else Reason.MALFORMED, "loss or weight")
        if upload.body is not None and len(upload.body) != charter.upload_bytes:
            wanted = f"{len(upload.body)} bytes, {charter.upload_bytes} wanted"
            raise Refused(Reason.SHAPE, wanted)

    def _timely(self, upload: Upload, k: int) -> None:
        if upload.step <= self.merged[k] or (k, upload.step) in self.waiting:
            raise Refused(Reason.REPLAYED, f"step {upload.step}")
        if upload.version > self.version:
            raise Refused(Reason.VERSION, f"{upload.version}, the newest is {self.version}")
        unknown = self.charter.algorithm.collect.based and upload.version not in self.bases
        if self.version - upload.version > self.charter.rules.staleness or unknown:
            raise Refused(Reason.STALE, f"version {upload.version}, now {self.version}")
        if self.charter.lockstep and upload.step == self.due:
            return
        if upload.step > LAST or not self._syncs.after(upload.step):
            raise Refused(Reason.ROUND, f"{upload.step} is no sync step")
        if self.charter.lockstep and upload.step > self.due:
            raise Refused(Reason.ROUND, f"step {upload.step}, step {self.due} is due")

    def _decoded(self, upload: Upload) -> np.ndarray:
        charter = self.charter
        assert upload.body is not None
        try:
            code = charter.algorithm.codec.unpack(upload.body, charter.message, charter.dtype)
        except ValueError as error:
            raise Refused(Reason.MALFORMED, str(error)) from None
        body = self._decode(code)
        largest = float(np.abs(body).max(initial=0)) * upload.weight
        if not (largest <= self._finite and upload.weight <= self._finite):
            raise Refused(Reason.NOT_FINITE)
        return body

    @property
    def most_bytes(self) -> int:
        """How long an upload may be."""
        return OVERHEAD + self.charter.upload_bytes

    # --- rounds ------------------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """Lockstep: the next sync step; 0 if there is none."""
        if self._due[0] != self.step:
            last = self.charter.rules.steps or self.step + FAR
            self._due = self.step, self._syncs.next(self.step, last)
        return self._due[1]

    def quarantined(self, k: int) -> bool:
        """Whether client k was refused too often to be listened to."""
        return k in self._struck

    def complete(self, absent: Set[int] = frozenset()) -> bool:
        """Whether everyone expected has spoken: not who is quarantined, nor at the free pace who is `absent`."""
        if not self.waiting:
            return False
        everyone, struck, gather = (
            len(self.charter.clients),
            self._struck,
            self.charter.rules.gather,
        )
        if self.charter.lockstep:
            enough = len(self.waiting) >= everyone - len(struck)
            heard = ((k, self.due) in self.waiting for k in range(everyone) if k not in struck)
            return enough and all(heard)
        spoken = {k for k, _ in self.waiting}
        if gather is not None:
            return len(spoken) >= min(gather, everyone - len(struck))
        return len(spoken) >= everyone - len(struck | absent)

    def missing(self) -> np.ndarray:
        """Lockstep: for each client, whether its upload is waited for."""
        everyone = range(len(self.charter.clients))
        return np.array(
            [k not in self._struck and (k, self.due) not in self.waiting for k in everyone]
        )

    def merge(self) -> list[tuple[str, int, int]]:
        """Merge what waits, in the order of the roster: each upload's client, step and staleness."""
        charter = self.charter
        self.step = self.due if charter.lockstep else self.step + 1
        rows = [self.waiting[key] for key in sorted(self.waiting)]
        with charter.precise():
            self.server, said = self._merge(self.server, self._arrivals(rows), np.int32(self.step))
            self.params = np.asarray(said)
        entered = [self._entered(row) for row in rows]
        self.waiting = {}
        self.version += 1
        self._remember()
        return entered

    def _entered(self, row: Waiting) -> tuple[str, int, int]:
        upload, k = row.upload, row.upload.client
        self.merged[k] = max(self.merged[k], upload.step)
        self.losses[k] += upload.loss - (self.said[k] if upload.loss >= self.said[k] else 0.0)
        self.said[k] = upload.loss
        self.bytes_up[k] += 0 if row.body is None else self.charter.upload_bytes
        self.stale[k] = self.version - upload.version
        return self.charter.clients[k], upload.step, int(self.stale[k])

    def _remember(self) -> None:
        if self.charter.algorithm.collect.based:
            oldest = self.version - self.charter.rules.staleness
            self.bases = {v: each for v, each in self.bases.items() if v >= oldest}
            self.bases[self.version] = self.params

    def recall(self, said: Broadcast) -> None:
        """A broadcast of before this hub was restored."""
        if self.version - self.charter.rules.staleness <= said.version < self.version:
            self.bases[said.version] = np.frombuffer(said.params, self.charter.dtype)

    def broadcast(self) -> Broadcast:
        """What the hub says now."""
        params = self.params.tobytes()
        return Broadcast(self.charter.digest, self.version, self.step, self.merged.copy(), params)

    def _arrivals(self, rows: list[Waiting]) -> Arrivals:
        """The bodies in places: one for each client, twice as many if that is not enough, and so on."""
        size, clients = self.charter.message, len(self.charter.clients)
        count = clients
        while count < len(rows):
            count *= 2
        bodies = np.zeros((count, size), self.charter.dtype)
        weights = np.zeros(count, self.charter.dtype)
        client, sent = np.zeros(count, np.int32), np.zeros(count, np.int32)
        based = self.charter.algorithm.collect.based
        base = np.zeros((count, self.params.size), self.charter.dtype) if based else None
        lone = len({row.upload.client for row in rows}) == len(rows)
        for n, row in enumerate(rows):
            place = row.upload.client if lone else n  # as in the simulator: client k in place k
            client[place], sent[place] = row.upload.client, row.upload.step
            if row.body is not None:
                bodies[place], weights[place] = row.body, row.upload.weight
            if base is not None:
                base[place] = self.bases[row.upload.version]
        return Arrivals(bodies, weights, client, sent, base)  # type: ignore[arg-type]

    def _decoder(self) -> Callable[[Any], np.ndarray]:
        codec, size = self.charter.algorithm.codec, self.charter.message
        if codec.linear:
            return lambda code: code  # a call of JAX costs more than all other checks together
        decode = jax.jit(lambda code: codec.decode(code, size))

        def decoded(code: Any) -> np.ndarray:
            with self.charter.precise():
                return np.asarray(decode(code))

        return decoded

    def _started(self) -> Any:
        charter = self.charter
        return charter.algorithm.start(meeting.first_params(charter, self._key), charter.setting)[0]

    def _merged(self, server: Any, got: Arrivals, t: Any) -> tuple[Any, Any]:
        algorithm = self.charter.algorithm
        collected = algorithm.collect.gather(got, self.charter.setting.clients)
        return algorithm.merge(server, collected, self.charter.gradient, t)

    # --- stored and restored -----------------------------------------------------------------------

    def stored(self, place: int) -> bytes:
        """All that is needed to go on; what lies before `place` on the broker is in."""
        values = {
            "digest": self.charter.digest.hex(),
            "version": self.version,
            "step": self.step,
            "place": place,
            "refused": [dict(each) for each in self.refused],
        }
        leaves = map(np.asarray, jax.tree.leaves(self.server))
        arrays = {f"server {n}": leaf for n, leaf in enumerate(leaves)}
        return pack(values, arrays | {name: getattr(self, name) for name in OF_CLIENTS})

    def restore(self, data: bytes) -> int:
        """Go on from what `stored` gave; the place on the broker to read from."""
        found: Bundle = unpack(data, "the hub's state")
        if found.values["digest"] != self.charter.digest.hex():
            raise BrokenRun(
                f"{self.charter.rules.run}: is on the broker with another spec: choose another name"
            )
        leaves, tree = jax.tree.flatten(self.server)
        stored = [found.arrays[f"server {n}"] for n in range(len(leaves))]
        with self.charter.precise():
            self.server = jax.tree.unflatten(tree, [jax.numpy.asarray(each) for each in stored])
            self.params = np.asarray(self._said(self.server))
        for name in OF_CLIENTS:
            setattr(self, name, found.arrays[name].copy())
        self._quarantine()
        self.version, self.step = found.values["version"], found.values["step"]
        self.refused = [Counter(each) for each in found.values["refused"]]
        self.bases = {}
        self._remember()
        return int(found.values["place"])
