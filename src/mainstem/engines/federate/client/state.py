"""The state of one client, and one step of several clients in one call. No network, no disk.

One thread may ask for predictions while another learns: a lock guards every change.
"""

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem.base import Sample
from mainstem.engines.federate.client.comparing import MAX_UNCOUNTED, Alone, Candidate, Comparing
from mainstem.engines.federate.client.kernels import Kernels
from mainstem.engines.federate.protocol.messages import Broadcast, Upload, client_id
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.engines.federate.protocol.sync_steps import SyncSteps
from mainstem.errors import NotFinite

BLOCK = 1024  # samples that are learnt in one call


class Progress(NamedTuple):
    """The counters of a client."""

    step: int = 0  # t: samples it has learnt from
    version: int = 0  # of the model it holds
    epoch: int = 0  # of that model; 0: no broadcast has come
    loss: float = 0.0  # sum so far
    metrics: Mapping[str, float] = {}  # sums so far
    since: int = 0  # the step at which these sums begin


class _Shared(NamedTuple):
    """The states of clients that have learnt together, in rows."""

    stacked: Any
    owners: "list[ClientState]"


class ClientState:
    """One client of a run."""

    def __init__(self, kernels: Kernels, k: int):
        self.kernels = kernels
        self.document = kernels.document
        self.k = k
        self.session = 0  # of the process, in its uploads
        self._own: Any = None  # the algorithm's state
        self._shared: _Shared | None = None  # a row is the state, if it has none of its own
        self.candidate: Candidate | None = None
        self.alone: Alone | None = None
        self.sync_steps = SyncSteps(self.document.algorithm.sync)
        self._lock = threading.RLock()
        self._received: Broadcast | None = None  # a newer model that is not applied yet
        self._applied: Broadcast | None = None  # the newest that is
        self.changes = 0  # of the algorithm's state
        self.failure: NotFinite | None = None  # why the model was reset, until somebody raises it
        self._uncounted: list[
            tuple[Any, int]
        ] = []  # results on the device, and the row of this client
        with self.document.precision():
            self.restore(kernels.initial(np.int32(k)), Progress())

    def follow(self, document: RunDocument, k: int) -> None:
        """Goes on with other rules, as client k."""
        with self._lock:
            _ = self.client  # applies a broadcast of the roster before
            self.document, self.k = document, k

    def restore(self, client: Any, progress: Progress) -> None:
        """Replaces the algorithm's state and the counters."""
        with self._lock:
            self._client = client
            self.progress = progress
            self._received = self._applied = None

    @property
    def _client(self) -> Any:
        """The algorithm's state, without a broadcast that is not applied yet."""
        own = self._own
        if own is not None:
            return own
        with self._lock, self.document.precision():
            if self._shared is not None and self._own is None:
                stacked, owners = self._shared
                self._own = self.kernels.row(stacked, np.int32(owners.index(self)))
            return self._own

    @_client.setter
    def _client(self, client: Any) -> None:
        self._own, self._shared = client, None
        self.changes += 1

    def _share(self, shared: _Shared) -> None:
        """Replaces the state by a row, which is taken out when somebody asks for it."""
        self._own, self._shared = None, shared
        self.changes += 1

    @property
    def step(self) -> int:
        """Samples it has learnt from."""
        return self.progress.step

    @property
    def others(self) -> list[Comparing]:
        """The models that its own is compared with."""
        return [each for each in (self.candidate, self.alone) if each is not None]

    @property
    def age(self) -> tuple[int, int]:
        """The age of the model it holds, as that of a broadcast."""
        return self.progress.epoch, self.progress.version

    @property
    def client(self) -> Any:
        """The algorithm's state, with the newest broadcast applied."""
        if self._received is None:  # without the lock: as if asked before the next broadcast came
            return self._client
        with self._lock:
            if self._received is not None:
                newest = self._received
                steps = np.int32(newest.merged[self.k]), np.int32(newest.step)
                with self.document.precision():
                    params = self.document.decoded(newest.params)
                    self._client = self.kernels.receive(self._client, params, *steps)
                self._applied, self._received = newest, None
            return self._client

    @property
    def received(self) -> Broadcast | None:
        """The newest broadcast, if it is not applied yet."""
        return self._received

    @property
    def _now(self) -> tuple[Any, Any]:
        return np.int32(self.step + 1), np.int32(self.k)

    def decide(self, shown: Any) -> tuple[np.ndarray, int, Any]:
        """The decision for what is shown, the number of changes so far, and the state that has decided."""
        with self._lock:
            client, changes, now = self.client, self.changes, self._now
        with self.document.precision():
            decision = np.asarray(self.kernels.decide(client, shown, *now))
        if np.count_nonzero(np.isfinite(decision)) < decision.size:  # twice as quick as `all`
            self.reset("its prediction")
            self.raise_failure()
        return decision, changes, client

    def model_of(self, client: Any) -> Any:
        """The model with which a state of this client decides."""
        with self.document.precision():
            return jax.tree.map(np.asarray, self.kernels.model(client))

    def reset(self, what: str) -> None:
        """Begins anew from the newest broadcast, because `what` is not finite."""
        with self._lock:
            self._received, self._applied = self._received or self._applied, None
            with self.document.precision():
                self._client = self.kernels.initial(np.int32(self.k))
            start = (
                "the first model" if self._received is None else f"merge {self._received.version}"
            )
            who = f"client {self.document.clients[self.k]} of {self.document.rules.run}"
            self.failure = NotFinite(
                f"{who}: {what} is not finite at sample {self.step}: it begins anew from {start}; is the unit of "
                "a feature wrong, or the step too large?"
            )

    def raise_failure(self) -> None:
        """Raises the reason for which the model was reset, once."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def is_finite(self) -> bool:
        """Whether all numbers of its state are finite."""
        return _finite(jax.tree.map(np.asarray, self._client))

    def learn_late(self, sample: Sample, params: Any) -> None:
        """Learns from a sample whose prediction was made by an earlier model."""
        with self._lock:
            client = self.client
            with self.document.precision():
                self._client, results = self.kernels.learn_late(client, params, sample, *self._now)
            self._learnt(self.others and _rows([sample]), 1, results, 0)

    def learn_many(self, samples: Sample, count: int) -> None:
        """Learns from the first `count` samples in turn. No sync may follow any but the last."""
        with self._lock:
            client = self.client
            with self.document.precision():
                self._client, results = self.kernels.learn_many(
                    client, samples, np.int32(count), *self._now
                )
            self._learnt(samples, count, results, 0)

    def _learnt(self, samples: Any, count: int, results: Any, row: int) -> None:
        """Counts `count` samples, with their results in this row."""
        for other in self.others:
            other.face(samples, count, *self._now, np.asarray(results)[row])
        self._uncounted.append((results, row))
        self.progress = self.progress._replace(step=self.step + count)
        if len(self._uncounted) >= MAX_UNCOUNTED:
            self.totals()

    def totals(self) -> Progress:
        """The counters, with all results fetched from the device."""
        with self._lock:
            if self._uncounted:
                rows = [np.asarray(results)[row] for results, row in self._uncounted]
                self._uncounted = []
                loss, *others = _sum(rows)
                if not all(map(math.isfinite, (loss, *others))):
                    if self.failure is None:
                        self.reset("its loss")
                    nothing = np.zeros_like(rows[0])
                    rows = [row if np.isfinite(row).all() else nothing for row in rows]
                    loss, *others = _sum(rows)
                before = self.progress.metrics
                sums = {
                    name: before.get(name, 0.0) + value
                    for name, value in zip(self.kernels.metrics, others, strict=True)
                }
                loss += self.progress.loss
                self.progress = self.progress._replace(loss=loss, metrics=sums)
            return self.progress

    def make_upload(self) -> Upload:
        """The upload of this sync; without a body if the client is not sampled or has nothing to send."""
        with self._lock:
            client = self.client
            with self.document.precision():
                now = np.int32(self.step), np.int32(self.k)
                self._client, code, weight = self.kernels.upload(client, *now)
                code, weight = jax.tree.map(np.asarray, (code, weight))  # faster than `device_get`
            return self._upload(code, float(weight))

    def _upload(self, code: Any, weight: float, finite: bool = False) -> Upload:
        """The upload with this code; `finite`: all its numbers are known to be."""
        progress = self.totals()
        if not finite and self.failure is None and weight > 0 and not _finite((code, weight)):
            self.reset("its upload")
        if self.failure is not None:
            weight = 0.0
        return Upload(
            run=self.document.digest,
            codec=self.document.codec,
            client=client_id(self.document.clients[self.k]),
            step=progress.step,
            version=progress.version,
            loss=progress.loss,
            weight=weight,
            body=self.document.algorithm.codec.pack(code) if weight > 0 else None,
            epoch=progress.epoch,
            session=self.session,
        )

    def compare_with(self, broadcast: Broadcast) -> None:
        """Compares this client's losses with those of a candidate from now on."""
        with self._lock:
            self.candidate = Candidate(self.kernels, broadcast)

    def enter(self, broadcast: Broadcast) -> None:
        """Goes over to the epoch of a broadcast. If another model is the newest there, it is taken."""
        with self._lock:
            begins = not self.progress.epoch and self.document.rules.start is not None
            another = self.progress.epoch and self.progress.version != broadcast.version
            if begins or another:
                self.receive(broadcast)
            self.progress = self.progress._replace(epoch=broadcast.epoch)

    def receive(self, broadcast: Broadcast) -> None:
        """Takes a newer model. It is applied when the state is used next."""
        with self._lock:
            self._received = broadcast
            self.progress = self.progress._replace(epoch=broadcast.epoch, version=broadcast.version)


def block(samples: Sample, first: int, size: int, room: int) -> Sample:
    """`size` samples, padded to `room` with copies of the last, so that few shapes are compiled."""

    def one(x: np.ndarray) -> np.ndarray:
        part = x[first : first + size]
        if room == size:
            return part
        return np.concatenate([part, np.repeat(part[-1:], room - size, 0)])

    return jax.tree.map(one, samples)


def learn_together(
    states: list[ClientState], samples: Sequence[Sample], uploads: bool
) -> list[Upload | None]:
    """One step of several clients in one call. They share their kernels and the broadcast to apply."""
    for state in states:
        state._lock.acquire()
    try:
        return _learn_locked(states, samples, uploads)
    finally:
        for state in states:
            state._lock.release()


def _learn_locked(
    states: list[ClientState], samples: Sequence[Sample], uploads: bool
) -> list[Upload | None]:
    kernels, broadcast, document = states[0].kernels, states[0]._received, states[0].document
    ts = np.array([state.step + 1 for state in states], np.int32)
    ks = np.array([state.k for state in states], np.int32)
    single = len(states) == 1
    given = samples[0] if single else _rows(samples)
    applied = None
    if broadcast is not None:
        merged = broadcast.merged[ks].astype(np.int32)
        applied = document.decoded(broadcast.params), merged, np.int32(broadcast.step)
    with document.precision():
        before = states[0]._client if single else _stacked(states)
        after, results, sent = kernels.step(before, given, ts, ks, applied, uploads=uploads)
        if sent is not None:  # all at once, and faster than `device_get`
            sent, results = jax.tree.map(np.asarray, (sent, results))
    shared = None if single else _Shared(after, states)
    for n, state in enumerate(states):
        if broadcast is not None:
            state._applied, state._received = broadcast, None
        if shared is None:
            state._client = after
        else:
            state._share(shared)
        state._learnt(state.others and _rows(samples[n : n + 1]), 1, results, n)
    if sent is None:
        return [None] * len(states)
    codes, weights = sent
    finite = _finite(sent)  # a call for each client would cost more
    leaves, tree = jax.tree.flatten(codes)
    return [
        state._upload(jax.tree.unflatten(tree, [leaf[n] for leaf in leaves]), weight, finite)
        for n, (state, weight) in enumerate(zip(states, weights.tolist(), strict=True))
    ]


def _stacked(states: list[ClientState]) -> Any:
    """The states of several clients in rows: as their last call has left them, if it was of the same clients."""
    last = states[0]._shared
    if last is not None and last.owners == states and all(s._shared is last for s in states):
        return last.stacked
    return states[0].kernels.stack([state._client for state in states])


def _finite(tree: Any) -> bool:
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree))


def _sum(rows: Sequence[np.ndarray]) -> list[float]:
    """The sums of loss and metrics over all rows."""
    total: Any = rows[0] if len(rows) == 1 else np.sum(rows, axis=0, dtype=np.float64)
    sums: list[float] = total.tolist()
    return sums


def _rows(samples: Sequence[Sample]) -> Sample:
    rows: Sample = jax.tree.map(lambda *each: np.array(each), *samples)  # quicker than `stack`
    return rows
