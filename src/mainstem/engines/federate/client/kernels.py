"""Compiled functions of a client: decide, learn, upload and receive, for one client or for several at once."""

from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp

from mainstem import random, replay
from mainstem.base import Algorithm, At, Gradient, Problem, Sample
from mainstem.engines import run_context
from mainstem.engines.federate.protocol.run_document import RunDocument, with_own_problem


class Kernels:
    """The compiled functions of a run. The step t and the client k are arguments.

    Learning returns the client after it, and rows of results: the loss, then the metrics.
    """

    def __init__(self, document: RunDocument):
        self.document = document
        self.key: Any = random.root(document.rules.seed)
        self.metrics: tuple[str, ...] = ()  # names, known after the first call
        with document.precision():
            self.initial = jax.jit(self._initial)
            self.decide = jax.jit(self._decide)
            self.model = jax.jit(document.algorithm.model)
            self.step = jax.jit(self._step, static_argnames="uploads")
            self.stack = jax.jit(
                lambda clients: jax.tree.map(lambda *each: jnp.stack(each), *clients)
            )
            self.row = jax.jit(lambda clients, n: jax.tree.map(lambda leaf: leaf[n], clients))
            self.learn_late = jax.jit(self._learn_late)
            self.learn_many = jax.jit(self._learn_many)
            self.upload = jax.jit(self._upload)
            self.receive = jax.jit(self._receive)
            self.fixed_loss = jax.jit(self._fixed_loss)

    def _at(self, purpose: int, t: Any, k: Any) -> At:
        return replay.at_one(self.key, purpose, t, k)

    def _initial(self, k: Any) -> Any:
        document = self.document
        params = run_context.first_params(document, self.key)
        return document.algorithm.start(params, document.setting)[1](k)

    def _decide(self, client: Any, shown: Any, t: Any, k: Any) -> Any:
        document = self.document
        at = self._at(random.DECIDE, t, k)
        return document.problem.decide(document.algorithm.model(client), shown, at)

    def _step(
        self,
        clients: Any,
        samples: Sample,
        ts: Any,
        ks: Any,
        broadcast: Any,
        uploads: bool,
    ) -> tuple[Any, Any, Any]:
        """One step of several clients: each applies the broadcast if there is one, learns, and uploads if asked.

        In one call, because a call costs more than the arithmetic of a small model. `broadcast` is a model, the
        merged step of each client, and the step of its merge. Clients and samples are stacked, and so is what is
        returned. But the state and the sample of a client alone have no leading axis, nor has its state after.
        """
        single = len(ts) == 1
        if single:
            clients, samples = jax.tree.map(lambda x: jnp.asarray(x)[None], (clients, samples))
        if broadcast is not None:
            clients = jax.vmap(self._receive, (0, None, 0, None))(clients, *broadcast)
        clients, results = jax.vmap(self._learn)(clients, samples, ts, ks)
        sent = None
        if uploads:
            clients, *sent = jax.vmap(self._upload)(clients, ts, ks)
        return jax.tree.map(itemgetter(0), clients) if single else clients, results, sent

    def _learn(self, client: Any, sample: Sample, t: Any, k: Any) -> tuple[Any, Any]:
        params = self.document.algorithm.model(client)
        return self._learn_at(self.document, client, params, sample, t, k)

    def _learn_late(
        self, client: Any, params: Any, sample: Sample, t: Any, k: Any
    ) -> tuple[Any, Any]:
        """`params` is the model that made the prediction: loss and gradient are those of it."""
        real = self.document.gradient
        fixed = real._replace(at=lambda _, seen: real.at(params, seen))
        met = _WithGradient(self.document, fixed)
        after, results = self._learn_at(met, client, params, sample, t, k)
        return after, results[None]

    def _learn_at(
        self, met: run_context.RunContext, client: Any, params: Any, sample: Sample, t: Any, k: Any
    ) -> tuple[Any, Any]:
        faced = met.problem.face(params, sample, self._at(random.DECIDE, t, k))
        at = self._at(random.LEARN, t, k)
        after = run_context.learnt_one(met, client, faced.seen, faced.informative, at)
        self.metrics = tuple(faced.metrics)
        numbers = (faced.loss, *faced.metrics.values())
        results = jnp.stack([jnp.asarray(each, faced.loss.dtype) for each in numbers])
        return after, results

    def _learn_many(
        self, client: Any, samples: Sample, count: Any, t: Any, k: Any
    ) -> tuple[Any, Any]:
        """The first `count` of the samples in turn, from step t on."""

        def one(client: Any, given: Any) -> tuple[Any, Any]:
            n, sample = given
            after, results = self._learn(client, sample, t + n, k)
            counts = n < count
            return run_context.chosen(counts, after, client), jnp.where(counts, results, 0)

        length = len(jax.tree.leaves(samples)[0])
        steps = jnp.arange(length, dtype=jnp.int32)
        client, results = jax.lax.scan(one, client, (steps, samples))
        return client, jnp.sum(results, axis=0, keepdims=True)

    def _fixed_loss(self, params: Any, samples: Sample, count: Any, t: Any, k: Any) -> Any:
        """The loss of a model that does not change, on the first `count` of the samples, from step t on."""

        def one(sample: Sample, n: Any) -> Any:
            at = self._at(random.DECIDE, t + n, k)
            return jnp.where(n < count, self.document.problem.face(params, sample, at).loss, 0)

        length = len(jax.tree.leaves(samples)[0])
        return jnp.sum(jax.vmap(one)(samples, jnp.arange(length, dtype=jnp.int32)))

    def _upload(self, client: Any, t: Any, k: Any) -> tuple[Any, Any, Any]:
        """The client after its upload, the encoded body, and its weight: 0 if the client is not sampled."""
        algorithm = self.document.algorithm
        sampled = algorithm.participation.heard(self.key, t, self.document.setting.clients)[k]
        client, body, weight = algorithm.upload(client, self._at(random.UPLOAD, t, k))
        code = algorithm.codec.encode(body, self._at(random.CODEC, t, k).key)
        weight = jnp.where(sampled, weight, 0).astype(body.dtype)
        decoded = algorithm.codec.decode(code, body.size)
        return algorithm.sent(client, body, decoded, weight > 0), code, weight

    def _receive(self, client: Any, params: Any, merged: Any, t: Any) -> Any:
        document = self.document
        return document.algorithm.download(client, params, document.gradient, merged, t)


class _WithGradient(NamedTuple):
    """A run document with another gradient."""

    document: RunDocument
    gradient: Gradient

    @property
    def algorithm(self) -> Any:
        return self.document.algorithm

    @property
    def problem(self) -> Any:
        return self.document.problem

    @property
    def setting(self) -> Any:
        return self.document.setting


_SHARED: WeakValueDictionary[tuple[Any, ...], Kernels] = WeakValueDictionary()


def shared_kernels(
    document: RunDocument, problem: Problem | None, algorithm: Algorithm | None = None
) -> Kernels:
    """The compiled functions of a run, shared by the clients in this process that have the same problem.

    Those of another `algorithm` than that of the run, if it is given.
    """
    key = document.digest, document.revision, id(problem), algorithm
    found = _SHARED.get(key)
    if found is None:
        own = own_document(document, problem)
        found = Kernels(own if algorithm is None else own._replace(algorithm=algorithm))
        _SHARED[key] = found
    return found


def own_document(document: RunDocument, problem: Problem | None) -> RunDocument:
    """The document, with the problem of a client if it has its own."""
    return document if problem is None else with_own_problem(document, problem)
