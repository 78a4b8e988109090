"""Learners: what users call to take part in a run. Each, blocking or async, wraps one session."""

import abc
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from mainstem.base import Problem, Sample
from mainstem.engines.federate import event_log
from mainstem.engines.federate.client import batching
from mainstem.engines.federate.client.persistence import Persistence
from mainstem.engines.federate.client.river_adapter import estimator
from mainstem.engines.federate.client.session import Outgoing, Session
from mainstem.engines.federate.client.state import learn_together
from mainstem.engines.federate.client.uplink import Uplink
from mainstem.engines.federate.protocol.messages import Upload
from mainstem.engines.federate.protocol.run_document import decode
from mainstem.engines.federate.transport.connection import NotThere
from mainstem.engines.federate.transport.event_loop import BackgroundLoop
from mainstem.engines.federate.transport.opening import Opening
from mainstem.errors import MainstemError
from mainstem.parts.step import AnyStep


class Predictor(abc.ABC):
    """What both learners share: predictions and counters."""

    def __init__(self, session: Session):
        self.session = session

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuses `copy` and `pickle`."""
        raise MainstemError(
            f"{self!r} is a live connection, which cannot be copied or pickled: join the run as another client, "
            "or close this one and join again with its folder"
        )

    def __repr__(self) -> str:
        document, k = self.session.document, self.session.state.k
        return f"<client {document.clients[k]} of {document.rules.run}, {self.step} samples>"

    def predict_one(self, x: Any) -> Any:
        """The prediction for x: a number, or a label."""
        return self.session.format.label(self._decision(x))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each label."""
        return self.session.format.probabilities(self._decision(x))

    def _decision(self, x: Any) -> np.ndarray:
        return self.session.decision(x)

    @property
    def step(self) -> int:
        """Samples it has learnt from."""
        return self.session.step

    @property
    def loss(self) -> float:
        """The sum of its losses so far."""
        return self.session.state.totals().loss

    @property
    def mean_loss(self) -> float:
        """The mean of its losses so far; of those that it knows, if it has lost its folder."""
        totals = self.session.state.totals()
        return totals.loss / max(totals.step - totals.since, 1)

    @property
    def metrics(self) -> dict[str, float]:
        """The means of its metrics so far."""
        totals = self.session.state.totals()
        count = max(totals.step - totals.since, 1)
        return {name: total / count for name, total in totals.metrics.items()}

    @property
    def gain(self) -> float | None:
        """By how much its mean loss is less than that of the model that it learns alone; None if it does not."""
        alone = self.session.state.alone
        return None if alone is None else alone.compared().gain

    @property
    def skipped(self) -> int:
        """Syncs without an upload because too many were pending."""
        return self.session.skipped

    @property
    def lost(self) -> int:
        """Samples that were learnt after the last snapshot, before a kill."""
        return self.session.lost

    @property
    def refusals(self) -> list[str]:
        """The latest uploads that the hub has refused, and why."""
        return list(self.session.uplink.refusals)

    @property
    def hub_is_away(self) -> bool:
        """Whether the hub, or the NATS server, has not been heard for a while."""
        return self.session.uplink.hub_is_away

    @property
    def sent_bytes(self) -> int:
        """Bytes of all uploads sent so far."""
        return self.session.uplink.sent_bytes


class AsyncLearner(Predictor):
    """A client for programs with an event loop."""

    def __init__(self, session: Session):
        super().__init__(session)
        self._one_at_a_time = asyncio.Lock()

    async def learn_one(self, x: Any, y: Any) -> None:
        """Learns that y was the truth for x."""
        await self.step_with(self.session.format.sample(x, y))

    async def step_with(self, sample: Sample) -> None:
        """One step with a sample in the format of streams."""
        session = self.session
        async with self._one_at_a_time:
            if session.open is not None:  # the last step was cancelled while it waited
                await session.settle()
            predicted = session.late_model(sample)
            if predicted is None:
                await batching.learn(session.state, sample, session.uploads_next, self._stepped)
            else:
                session.dispatch(session.learn_late(sample, predicted))
            await session.settle()
            session.state.raise_failure()

    def _stepped(self, upload: Upload | None) -> None:
        self.session.dispatch(self.session.stepped(upload))

    async def learn_many(self, xs: Any, ys: Any) -> None:
        """Learns from many samples in turn."""
        samples, count = self.session.format.samples(xs, ys)
        async with self._one_at_a_time:
            for outgoing in self.session.learn_blocks(samples, count):
                await self.session.exchange(outgoing)
                self.session.state.raise_failure()

    async def close(self) -> None:
        """Sends what is pending, stores the state and leaves the run."""
        await self.session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class Learner(Predictor):
    """A client for programs without an event loop. Its network runs in a thread of its own."""

    def __init__(self, session: Session, background: BackgroundLoop):
        super().__init__(session)
        self._background = background

    def learn_one(self, x: Any, y: Any) -> None:
        """Learns that y was the truth for x."""
        self.step_with(self.session.format.sample(x, y))

    def step_with(self, sample: Sample) -> None:
        """One step with a sample in the format of streams."""
        session = self.session
        predicted = session.late_model(sample)
        if predicted is None:
            uploads = learn_together([session.state], [sample], session.uploads_next())
            self._exchange(session.stepped(*uploads))
        else:
            self._exchange(session.learn_late(sample, predicted))
        session.state.raise_failure()

    def learn_many(self, xs: Any, ys: Any) -> None:
        """Learns from many samples in turn."""
        samples, count = self.session.format.samples(xs, ys)
        for outgoing in self.session.learn_blocks(samples, count):
            self._exchange(outgoing)
            self.session.state.raise_failure()

    def as_river(self) -> Any:
        """This client as an estimator of River."""
        return estimator(self, self.session.document.source.classes)

    def _exchange(self, outgoing: Outgoing | None) -> None:
        if outgoing is None:
            return
        exchanged = self._background.post(self.session.exchange(outgoing))
        if self.session.document.lockstep or self.session.patient:
            exchanged.result()

    def close(self) -> None:
        """Sends what is pending, stores the state and leaves the run."""
        if self._background.running:
            self._background.wait(self.session.close())
            self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def join(
    url: str,
    *,
    run: str,
    client: str,
    credentials: str | Path | None = None,
    folder: str | Path | None = None,
    problem: Problem | None = None,
    patient: bool = False,
    alone: AnyStep | None = None,
    **options: Any,
) -> Learner:
    """Joins a run as one of its clients, and returns a learner: `predict_one`, `learn_one`.

    With a `folder` the client stores its state there at every sync, and continues from it. With a `problem` its
    local model is of another kind, where the algorithm has local models. A `patient` client waits while its
    uploads are pending instead of skipping syncs: for streams that can wait, such as files. With `alone`, a step
    size, it also learns a model from its own samples alone, and reports the loss of that beside its own. Of
    the `options`, `wait` is the time in seconds to wait for the server and the run; others are those of
    `nats.connect`.
    """
    background = BackgroundLoop(f"mainstem {client}")
    opening = _opened(
        _uplink(url, run, client, credentials, folder, options),
        lambda uplink: Session(uplink, client, folder, problem, patient, alone),
    )
    try:
        session: Session = background.wait(opening)
    except BaseException:
        background.close()
        raise
    return Learner(session, background)


def join_async(
    url: str,
    *,
    run: str,
    client: str,
    credentials: str | Path | None = None,
    folder: str | Path | None = None,
    problem: Problem | None = None,
    patient: bool = False,
    alone: AnyStep | None = None,
    **options: Any,
) -> Opening[AsyncLearner]:
    """`join` for programs with an event loop: ``async with ms.join_async(...) as learner``, or with `await`."""
    opening = _opened(
        _uplink(url, run, client, credentials, folder, options),
        lambda uplink: Session(uplink, client, folder, problem, patient, alone),
    )
    return Opening(_learner(opening))


async def _uplink(
    url: str,
    run: str,
    client: str,
    credentials: str | Path | None,
    folder: str | Path | None,
    options: dict[str, Any],
) -> Uplink:
    """The uplink of a client. Without a server it is offline, if the folder has what it needs."""
    stored = None if folder is None else Persistence.document_in(Path(folder))
    if stored is None:
        return await Uplink.open(url, run, client, credentials, **options)
    try:
        return await Uplink.open(url, run, client, credentials, **options | {"wait": 0.0})
    except NotThere as error:
        document = decode(stored, run)
        if document.rules.run != run or client not in document.clients:
            raise
        text = f"{error}: it begins offline, with its folder"
        event_log.warning("offline", text, run=run, client=client)
        given = {"credentials": credentials, "name": client, **options}
        return Uplink.offline(document, client, url, **given)


async def _learner(opening: Awaitable[Session]) -> AsyncLearner:
    return AsyncLearner(await opening)


async def _opened(opening: Awaitable[Uplink], begin: Callable[[Uplink], Session]) -> Session:
    uplink = await opening
    try:
        session = begin(uplink)
    except BaseException:
        await uplink.close()
        raise
    try:
        await session.resume()
    except BaseException:
        await session.abandon()
        raise
    return session
