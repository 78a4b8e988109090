"""What a client does, compiled: the algorithm's own functions, for one client or for several at once."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem import random, replay
from mainstem.base import At, Gradient, Sample
from mainstem.engines import meeting
from mainstem.engines.federate.candidate import losses
from mainstem.engines.federate.charter import Charter


class Moves:
    """What a client does, compiled. A step t and a client k are arguments.

    Learning gives the client after it and what came of it, in rows: the loss, then the metrics.
    """

    def __init__(self, charter: Charter):
        self.charter = charter
        self.key: Any = random.root(charter.rules.seed)
        self.metrics: tuple[str, ...] = ()  # their names, once something was learnt
        with charter.precise():
            self.first = jax.jit(self._first)
            self.decide = jax.jit(self._decide)
            self.turn = jax.jit(self._turn, static_argnames="speaks")
            self.learn_late = jax.jit(self._learn_late)
            self.learn_many = jax.jit(self._learn_many)
            self.speak = jax.jit(self._speak)
            self.listen = jax.jit(self._listen)
            self.lost = jax.jit(losses(charter, self.key))

    def _at(self, purpose: int, t: Any, k: Any) -> At:
        return replay.at_one(self.key, purpose, t, k)

    def _first(self, k: Any) -> Any:
        charter = self.charter
        params = meeting.first_params(charter, self.key)
        return charter.algorithm.start(params, charter.setting)[1](k)

    def _decide(self, client: Any, shown: Any, t: Any, k: Any) -> Any:
        charter = self.charter
        at = self._at(random.DECIDE, t, k)
        return charter.problem.decide(charter.algorithm.model(client), shown, at)

    def _turn(
        self, clients: Sequence[Any], samples: Sample, ts: Any, ks: Any, news: Any, speaks: bool
    ) -> tuple[list[Any], Any, Any]:
        """A step of several clients: each takes over the news if there are any, learns, and speaks if asked.

        In one call, because a call costs more than a small model's arithmetic. `news` are a model and how far
        each of the clients is merged in it; what they say comes as it leaves `speak`, one row for each. A client
        alone is given its sample as it is, several have theirs in rows.
        """
        if len(clients) == 1:
            samples = jax.tree.map(lambda x: jnp.asarray(x)[None], samples)
        many = jax.tree.map(lambda *each: jnp.stack(each), *clients)
        if news is not None:
            many = jax.vmap(self._listen, (0, None, 0))(many, *news)
        many, told = jax.vmap(self._learn)(many, samples, ts, ks)
        said = None
        if speaks:
            many, *said = jax.vmap(self._speak)(many, ts, ks)
        alone = [jax.tree.map(itemgetter(n), many) for n in range(len(clients))]
        return alone, told, said

    def _learn(self, client: Any, sample: Sample, t: Any, k: Any) -> tuple[Any, Any]:
        params = self.charter.algorithm.model(client)
        return self._learnt(self.charter, client, params, sample, t, k)

    def _learn_late(
        self, client: Any, decided: Any, sample: Sample, t: Any, k: Any
    ) -> tuple[Any, Any]:
        """`decided` is the client as it was when it decided: its model is charged and asked for the slope."""
        params = self.charter.algorithm.model(decided)
        real = self.charter.gradient
        there = real._replace(at=lambda _, seen: real.at(params, seen))
        after, told = self._learnt(_Met(self.charter, there), client, params, sample, t, k)
        return after, told[None]

    def _learnt(
        self, met: meeting.Meeting, client: Any, params: Any, sample: Sample, t: Any, k: Any
    ) -> tuple[Any, Any]:
        faced = met.problem.face(params, sample, self._at(random.DECIDE, t, k))
        at = self._at(random.LEARN, t, k)
        after = meeting.learnt_one(met, client, faced.seen, faced.news, at)
        self.metrics = tuple(faced.metrics)
        numbers = (faced.loss, *faced.metrics.values())
        told = jnp.stack([jnp.asarray(each, faced.loss.dtype) for each in numbers])
        return after, told

    def _learn_many(
        self, client: Any, samples: Sample, count: Any, t: Any, k: Any
    ) -> tuple[Any, Any]:
        """The first `count` of these samples in turn, from step t on."""

        def one(client: Any, given: Any) -> tuple[Any, Any]:
            n, sample = given
            after, told = self._learn(client, sample, t + n, k)
            here = n < count
            return meeting.chosen(here, after, client), jnp.where(here, told, 0)

        length = len(jax.tree.leaves(samples)[0])
        turns = jnp.arange(length, dtype=jnp.int32)
        client, told = jax.lax.scan(one, client, (turns, samples))
        return client, jnp.sum(told, axis=0, keepdims=True)

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
