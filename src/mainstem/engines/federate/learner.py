"""A client that people use: it answers now, learns the truth after, and the model is everybody's."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from mainstem.base import Problem, Sample
from mainstem.engines.federate import together
from mainstem.engines.federate.background import Background
from mainstem.engines.federate.link import Link
from mainstem.engines.federate.member import turn
from mainstem.engines.federate.river import estimator
from mainstem.engines.federate.site import Said, Site
from mainstem.engines.federate.wire import Upload

Kind = TypeVar("Kind", bound=Site)


class AsyncLearner(Site):
    """A client for people with an event loop."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self._one_by_one = asyncio.Lock()

    async def learn_one(self, x: Any, y: Any) -> None:
        """Learn that y was the answer to x."""
        await self.step_with(self.answers.sample(x, y))

    async def step_with(self, sample: Sample) -> None:
        """One step with a sample as streams have them."""
        async with self._one_by_one:
            if self._open is not None:  # the step before was cancelled while it waited
                await self._settle()
            decided = self._late(sample)
            if decided is None:
                await together.turn(self.member, sample, self._speaks_next, self._said)
            else:
                self._goes(self._learn_late(sample, decided))
            await self._settle()

    def _said(self, upload: Upload | None) -> None:
        self._goes(self._spoken(upload))

    async def learn_many(self, xs: Any, ys: Any) -> None:
        """Learn from many in turn."""
        samples, count = self.answers.samples(xs, ys)
        async with self._one_by_one:
            for said in self._blocks(samples, count):
                await self._exchange(said)

    async def close(self) -> None:
        """Keep what is known, and leave."""
        await self._leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class Learner(Site):
    """A client for everybody else; its network lives in a thread of its own."""

    _background: Background

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn that y was the answer to x."""
        self.step_with(self.answers.sample(x, y))

    def step_with(self, sample: Sample) -> None:
        """One step with a sample as streams have them."""
        decided = self._late(sample)
        if decided is None:
            said = self._spoken(*turn([self.member], [sample], self._speaks_next()))
        else:
            said = self._learn_late(sample, decided)
        self._say(said)

    def learn_many(self, xs: Any, ys: Any) -> None:
        """Learn from many in turn."""
        samples, count = self.answers.samples(xs, ys)
        for said in self._blocks(samples, count):
            self._say(said)

    def as_river(self) -> Any:
        """This client as an estimator of River."""
        return estimator(self)

    def _say(self, said: Said | None) -> None:
        if said is None:
            return
        under_way = self._background.post(self._exchange(said))
        if self.charter.lockstep or self._patient:
            under_way.result()

    def close(self) -> None:
        """Keep what is known, and leave."""
        if self._background.running:
            self._background.wait(self._leave())
            self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
    **options: Any,
) -> Learner:
    """Join a run as one of its clients: `predict_one`, `learn_one`, and the model is everybody's.

    With a `folder` the client stores there where it is, at every sync, and goes on from it. With a
    `problem` its local model is of a kind of its own, where the algorithm has local models. A `patient`
    client waits while as much of it is under way as may be: for streams that can wait, such as files.
    """
    background = Background(f"mainstem {client}")
    opening = _opened(
        lambda link: Learner(link, client, folder, problem, patient),
        Link.open(url, run, client, credentials, **options),
    )
    try:
        learner: Learner = background.wait(opening)
    except BaseException:
        background.close()
        raise
    learner._background = background
    return learner


async def join_async(
    url: str,
    *,
    run: str,
    client: str,
    credentials: str | Path | None = None,
    folder: str | Path | None = None,
    problem: Problem | None = None,
    patient: bool = False,
    **options: Any,
) -> AsyncLearner:
    """`join` for people with an event loop."""
    return await _opened(
        lambda link: AsyncLearner(link, client, folder, problem, patient),
        Link.open(url, run, client, credentials, **options),
    )


async def _opened(made: Callable[[Link], Kind], opening: Awaitable[Link]) -> Kind:
    link = await opening
    try:
        learner = made(link)
        await learner._resume()
    except BaseException:
        await link.close()
        raise
    return learner
