"""One client's side of a run, without a network: it decides, learns, speaks and listens."""

import threading
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem.base import Sample
from mainstem.engines.federate.candidate import Candidate
from mainstem.engines.federate.moves import Moves
from mainstem.engines.federate.syncs import Syncs
from mainstem.engines.federate.wire import Broadcast, Upload

COUNTED = 1024  # steps whose losses are counted at once, at most


class Standing(NamedTuple):
    """All that a member must remember to go on later, but for its algorithm's state."""

    step: int = 0  # t, labels learnt from
    version: int = 0  # of the model it holds
    loss: float = 0.0  # the sum so far
    metrics: Mapping[str, float] = {}  # sums so far


class Member:
    """A client of a run."""

    def __init__(self, moves: Moves, k: int):
        self.moves = moves
        self.charter = moves.charter
        self.k = k
        self.news: Broadcast | None = None  # a newer model that it has heard and not yet taken over
        self.candidate: Candidate | None = None
        self._changing = threading.Lock()  # one thread may ask for answers while another learns
        self._told: list[tuple[Any, int]] = []  # rows on the device, not yet counted
        self.syncs = Syncs(self.charter.algorithm.sync)
        with self.charter.precise():
            self.put(moves.first(np.int32(k)), Standing())

    def put(self, client: Any, standing: Standing) -> None:
        """As it was then."""
        self._client = client
        self.standing = standing
        self.news = None

    @property
    def step(self) -> int:
        """How many labels it has learnt from."""
        return self.standing.step

    @property
    def client(self) -> Any:
        """The algorithm's state of it, with the newest model that it has heard."""
        if self.news is None:
            return self._client
        with self._changing:
            if self.news is not None:
                params, merged = _model(self.news, self.charter.dtype), self.news.merged[self.k]
                with self.charter.precise():
                    self._client = self.moves.listen(self._client, params, np.int32(merged))
                self.news = None
            return self._client

    @property
    def _now(self) -> tuple[Any, Any]:
        return np.int32(self.step + 1), np.int32(self.k)

    def decide(self, shown: Any) -> Any:
        """What it would answer now."""
        client = self.client
        with self.charter.precise():
            return self.moves.decide(client, shown, *self._now)

    def learn_late(self, sample: Sample, decided: Any) -> None:
        """From one sample; `decided` is the client that answered, long ago."""
        client = self.client
        with self.charter.precise():
            self._client, told = self.moves.learn_late(client, decided, sample, *self._now)
        self._learnt(self.candidate and _rows([sample]), 1, told, 0)

    def learn_many(self, samples: Sample, count: int) -> None:
        """From the first `count` samples in turn. No sync may lie before the last."""
        client, many = self.client, np.int32(count)
        with self.charter.precise():
            self._client, told = self.moves.learn_many(client, samples, many, *self._now)
        self._learnt(samples, count, told, 0)

    def _learnt(self, samples: Any, count: int, told: Any, row: int) -> None:
        """Count what came of the first `count` of `samples`: this row of what is `told`."""
        if self.candidate is not None:
            self.candidate.face(samples, count, *self._now, np.asarray(told)[row])
        self._told.append((told, row))
        self.standing = self.standing._replace(step=self.step + count)
        if len(self._told) >= COUNTED:
            self.count()

    def count(self) -> Standing:
        """The standing, with all that was learnt counted."""
        if self._told:
            rows = [np.asarray(told)[row] for told, row in self._told]
            total: Any = rows[0] if len(rows) == 1 else np.sum(rows, axis=0, dtype=np.float64)
            loss, *others = map(float, total)
            before = self.standing.metrics
            sums = {
                name: before.get(name, 0.0) + value
                for name, value in zip(self.moves.metrics, others, strict=True)
            }
            self.standing = self.standing._replace(loss=self.standing.loss + loss, metrics=sums)
            self._told = []
        return self.standing

    def speak(self) -> Upload:
        """What it says at this sync; without a body if it is not heard or has nothing to say."""
        client = self.client
        with self.charter.precise():
            now = np.int32(self.step), np.int32(self.k)
            self._client, code, weight = self.moves.speak(client, *now)
            code, weight = jax.tree.map(np.asarray, (code, weight))  # faster than `device_get`
        return self._upload(code, float(weight))

    def _upload(self, code: Any, weight: float) -> Upload:
        standing = self.count()
        return Upload(
            run=self.charter.digest,
            codec=self.charter.codec,
            client=self.k,
            step=standing.step,
            version=standing.version,
            loss=standing.loss,
            weight=weight,
            body=self.charter.algorithm.codec.pack(code) if weight > 0 else None,
        )

    def compare(self, broadcast: Broadcast) -> None:
        """From now on with this model."""
        self.candidate = Candidate(self.charter, broadcast, self.moves.lost)

    def listen(self, broadcast: Broadcast) -> None:
        """Take over a newer model, as soon as it matters."""
        self.news = broadcast
        self.standing = self.standing._replace(version=broadcast.version)


def turn(members: Sequence[Member], samples: Sequence[Sample], speaks: bool) -> list[Upload | None]:
    """Each learns from its sample, and speaks if asked to. They share their moves and their news."""
    moves, news, charter = members[0].moves, members[0].news, members[0].charter
    ts = np.array([member.step + 1 for member in members], np.int32)
    ks = np.array([member.k for member in members], np.int32)
    given = samples[0] if len(samples) == 1 else _rows(samples)
    before = [member._client for member in members]
    heard = (
        None if news is None else (_model(news, charter.dtype), news.merged[ks].astype(np.int32))
    )
    with charter.precise():
        after, told, said = moves.turn(before, given, ts, ks, heard, speaks=speaks)
        said = said and jax.tree.map(np.asarray, said)  # faster than `device_get`
    for n, (member, client) in enumerate(zip(members, after, strict=True)):
        with member._changing:
            member._client, member.news = client, None
        member._learnt(member.candidate and _rows(samples[n : n + 1]), 1, told, n)
    if said is None:
        return [None] * len(members)
    codes, weights = said
    return [
        member._upload(jax.tree.map(itemgetter(n), codes), float(weights[n]))
        for n, member in enumerate(members)
    ]


def _rows(samples: Sequence[Sample]) -> Sample:
    rows: Sample = jax.tree.map(lambda *each: np.stack(each), *samples)
    return rows


def _model(broadcast: Broadcast, dtype: np.dtype[Any]) -> np.ndarray:
    return np.frombuffer(broadcast.params, dtype)
