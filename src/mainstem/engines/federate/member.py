"""One client's side of a run, without a network: it decides, learns, speaks and listens.

The functions are the algorithm's own, for one client, compiled once for all members in a process.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random
from mainstem.base import At, Gradient, Sample
from mainstem.engines import meeting
from mainstem.engines.federate.candidate import Candidate, losses
from mainstem.engines.federate.charter import Charter
from mainstem.engines.federate.wire import Broadcast, Upload

AHEAD = 1024  # steps whose syncs are looked up at once
COUNTED = 1024  # steps whose losses are counted at once, at most


class Moves:
    """What a client does, compiled. A step t and a client k are arguments.

    Learning gives the client after it, what came of it (a vector: the loss, then the metrics) and the next step.
    """

    def __init__(self, charter: Charter):
        self.charter = charter
        self.key: Any = random.root(charter.rules.seed)
        self.metrics: tuple[str, ...] = ()  # their names, once something was learnt
        with charter.precise():
            self.first = jax.jit(self._first)
            self.decide = jax.jit(self._decide)
            self.learn = jax.jit(self._learn)
            self.learn_late = jax.jit(self._learn_late)
            self.learn_many = jax.jit(self._learn_many)
            self.speak = jax.jit(self._speak)
            self.listen = jax.jit(self._listen)
            self.lost = jax.jit(losses(charter, self.key))

    def _at(self, purpose: int, t: Any, k: Any) -> At:
        return At(t, k, random.fold(self.key, purpose, t, k))

    def _first(self, k: Any) -> Any:
        charter = self.charter
        params = meeting.first_params(charter, self.key)
        return charter.algorithm.start(params, charter.setting)[1](k)

    def _decide(self, client: Any, shown: Any, t: Any, k: Any) -> Any:
        charter = self.charter
        at = self._at(random.DECIDE, t, k)
        return charter.problem.decide(charter.algorithm.model(client), shown, at)

    def _learn(self, client: Any, sample: Sample, t: Any, k: Any) -> tuple[Any, Any, Any]:
        params = self.charter.algorithm.model(client)
        return self._learnt(self.charter, client, params, sample, t, k)

    def _learn_late(
        self, client: Any, decided: Any, sample: Sample, t: Any, k: Any
    ) -> tuple[Any, Any, Any]:
        """`decided` is the client as it was when it decided: its model is charged and asked for the slope."""
        params = self.charter.algorithm.model(decided)
        real = self.charter.gradient
        there = real._replace(at=lambda _, seen: real.at(params, seen))
        return self._learnt(_Met(self.charter, there), client, params, sample, t, k)

    def _learnt(
        self, met: meeting.Meeting, client: Any, params: Any, sample: Sample, t: Any, k: Any
    ) -> tuple[Any, Any, Any]:
        faced = met.problem.face(params, sample, self._at(random.DECIDE, t, k))
        at = self._at(random.LEARN, t, k)
        after = meeting.learnt_one(met, client, faced.seen, faced.news, at)
        self.metrics = tuple(faced.metrics)
        numbers = (faced.loss, *faced.metrics.values())
        told = jnp.stack([jnp.asarray(each, faced.loss.dtype) for each in numbers])
        return after, told, t + 1

    def _learn_many(
        self, client: Any, samples: Sample, count: Any, t: Any, k: Any
    ) -> tuple[Any, Any, Any]:
        """The first `count` of these samples in turn, from step t on."""

        def one(client: Any, given: Any) -> tuple[Any, Any]:
            n, sample = given
            after, told, _ = self._learn(client, sample, t + n, k)
            here = n < count
            return meeting.chosen(here, after, client), jnp.where(here, told, 0)

        length = len(jax.tree.leaves(samples)[0])
        turns = jnp.arange(length, dtype=jnp.int32)
        client, told = jax.lax.scan(one, client, (turns, samples))
        return client, jnp.sum(told, axis=0), t + count

    def _speak(self, client: Any, t: Any, k: Any) -> tuple[Any, Any, Any]:
        """The client after its upload, the code that travels, and its weight: 0 if it is not heard."""
        algorithm = self.charter.algorithm
        heard = algorithm.participation.heard(self.key, t, self.charter.setting.clients)[k]
        client, body, weight = algorithm.upload(client, self._at(random.UPLOAD, t, k))
        code = algorithm.codec.encode(body, self._at(random.CODEC, t, k).key)
        return client, code, jnp.where(heard, weight, 0).astype(body.dtype)

    def _listen(self, client: Any, params: Any, merged: Any) -> Any:
        return self.charter.algorithm.download(client, params, self.charter.gradient, merged)


class _Met(NamedTuple):
    """The charter's meeting with another gradient."""

    charter: Charter
    gradient: Gradient

    @property
    def algorithm(self) -> Any:
        return self.charter.algorithm

    @property
    def problem(self) -> Any:
        return self.charter.problem

    @property
    def setting(self) -> Any:
        return self.charter.setting


class Standing(NamedTuple):
    """All that a member must remember to go on later, but for its algorithm's state."""

    step: int = 0  # t, labels learnt from
    version: int = 0  # of the model it holds
    loss: float = 0.0  # the sum so far
    metrics: Mapping[str, float] = {}  # sums so far


class Member:
    """A client of a run. Its step and its place are kept on the device: bringing them there costs time."""

    def __init__(self, moves: Moves, k: int):
        self.moves = moves
        self.charter = moves.charter
        self.k = k
        self.candidate: Candidate | None = None
        self._told: list[Any] = []  # on the device, not yet counted
        self._ahead = -AHEAD  # the step from which on it has looked up which have a sync
        self._syncs = np.zeros(AHEAD, bool)
        with self.charter.precise():
            self._k = jnp.int32(k)
            self.put(moves.first(self._k), Standing())

    def put(self, client: Any, standing: Standing) -> None:
        """As it was then."""
        self.client = client
        self.standing = standing
        self._t = jnp.int32(standing.step + 1)

    @property
    def step(self) -> int:
        """How many labels it has learnt from."""
        return self.standing.step

    def decide(self, shown: Any) -> Any:
        """What it would answer now."""
        with self.charter.precise():
            return self.moves.decide(self.client, shown, self._t, self._k)

    def learn(self, sample: Sample, decided: Any = None) -> None:
        """From one sample; `decided` is the client that answered, if that was long ago."""
        moves, t = self.moves, self._t
        with self.charter.precise():
            if decided is None:
                self.client, told, self._t = moves.learn(self.client, sample, t, self._k)
            else:
                late = moves.learn_late(self.client, decided, sample, t, self._k)
                self.client, told, self._t = late
        if self.candidate is not None:
            alone = jax.tree.map(lambda x: np.asarray(x)[None], sample)
            self.candidate.face(alone, 1, t, self._k, told)
        self._moved(1, told)

    def learn_many(self, samples: Sample, count: int) -> None:
        """From the first `count` samples in turn. No sync may lie before the last."""
        t = self._t
        with self.charter.precise():
            many = self.moves.learn_many(self.client, samples, np.int32(count), t, self._k)
        self.client, told, self._t = many
        if self.candidate is not None:
            self.candidate.face(samples, count, t, self._k, told)
        self._moved(count, told)

    def _moved(self, count: int, told: Any) -> None:
        self._told.append(told)
        self.standing = self.standing._replace(step=self.step + count)
        if len(self._told) >= COUNTED:
            self.count()

    def count(self) -> Standing:
        """The standing, with all that was learnt counted."""
        if self._told:
            told = np.stack([np.asarray(each) for each in self._told])
            loss, *others = told.sum(axis=0, dtype=np.float64)
            before = self.standing.metrics
            sums = {
                name: before.get(name, 0.0) + float(value)
                for name, value in zip(self.moves.metrics, others, strict=True)
            }
            self.standing = self.standing._replace(
                loss=self.standing.loss + float(loss), metrics=sums
            )
            self._told = []
        return self.standing

    def due(self) -> bool:
        """Whether a sync follows the step just made."""
        if not self._ahead <= self.step < self._ahead + AHEAD:
            self._ahead = self.step
            steps = np.arange(self.step, self.step + AHEAD)
            self._syncs = self.charter.algorithm.sync.after(steps)
        return bool(self._syncs[self.step - self._ahead])

    def until_due(self, most: int) -> int:
        """How many steps from here, at most `most`, can be made before a sync must follow."""
        ahead = self.charter.algorithm.sync.after(np.arange(self.step + 1, self.step + most + 1))
        first = np.flatnonzero(ahead)
        return int(first[0]) + 1 if first.size else most

    def speak(self) -> Upload:
        """What it says at this sync; without a body if it is not heard or has nothing to say."""
        standing = self.count()
        with self.charter.precise():
            now = np.int32(standing.step)
            self.client, code, weight = self.moves.speak(self.client, now, self._k)
            code, weight = jax.tree.map(np.asarray, (code, weight))  # faster than `device_get`
        body = self.charter.algorithm.codec.pack(code) if weight > 0 else None
        return Upload(
            run=self.charter.digest,
            codec=self.charter.codec,
            client=self.k,
            step=standing.step,
            version=standing.version,
            loss=standing.loss,
            weight=float(weight),
            body=body,
        )

    def compare(self, broadcast: Broadcast) -> None:
        """From now on with this model."""
        self.candidate = Candidate(self.charter, broadcast, self.moves.lost)

    def listen(self, broadcast: Broadcast) -> None:
        """Take over a newer model."""
        params = np.frombuffer(broadcast.params, self.charter.dtype)
        merged = np.int32(broadcast.merged[self.k])
        with self.charter.precise():
            self.client = self.moves.listen(self.client, params, merged)
        self.standing = self.standing._replace(version=broadcast.version)
