"""A simulation that goes on whenever there are rows: the steps of `simulate`, a few at a time, without a trace."""

import dataclasses
from typing import Any

import jax
import numpy as np

from mainstem.base import Algorithm, Flat, Problem, Sampler
from mainstem.engines.simulate.job import Configuration, Job
from mainstem.engines.simulate.rollouts import Group
from mainstem.engines.simulate.settings import admitted, settings_of
from mainstem.streams.files import passed
from mainstem.streams.hosted import Hosted


class Rows(Hosted):
    """The rows of the steps after `before`: of shape [steps, clients, ...]."""

    def __init__(self, before: int, shown: Any, hidden: np.ndarray):
        self._before, self._shown, self._hidden = before, shown, hidden

    @property
    def clients(self) -> int:
        return int(self._hidden.shape[1])

    @property
    def steps(self) -> int:
        return self._before + len(self._hidden)

    @property
    def device(self) -> Sampler:
        return passed()

    def chunk(self, seed: int, first: int, last: int) -> Any:
        steps = np.arange(first - 1, last) - self._before
        steps = steps.clip(min=0)  # checks ask for step 1: any row of the data is one
        return jax.tree.map(lambda x: x[steps], (self._shown, self._hidden))


class Ongoing:
    """One seed of an algorithm and a problem, without delays. It can be pickled.

    >>> import mainstem as ms
    >>> going = Ongoing(ms.fedogd(0.5), ms.problems.linear(features=2, intercept=False), clients=3)
    >>> x = np.ones((4, 3, 2), np.float32)
    >>> going.advance(x, x.sum(axis=-1)); going.advance(x, x.sum(axis=-1))
    >>> going.step, np.round(going.model, 2).tolist()
    (8, [1.0, 1.0])
    """

    def __init__(
        self,
        algorithm: Algorithm,
        problem: Problem,
        *,
        clients: int,
        seed: int = 0,
        dtype: str = "float32",
    ):
        self._configuration = Configuration(algorithm, problem)
        self._clients, self._seed, self._dtype = clients, seed, dtype
        self._job: Job | None = None
        self._state: Any = None
        self._model: Any = None  # computed when it is asked for
        self._done = 0  # steps that are computed
        self._waiting: list[tuple[Any, np.ndarray]] = []  # rows of the steps after these

    @property
    def step(self) -> int:
        """The steps whose rows it has."""
        return self._done + sum(len(hidden) for _, hidden in self._waiting)

    def advance(self, shown: Any, hidden: np.ndarray) -> None:
        """Learns the rows of further steps: leaves [steps, clients, ...].

        The server's model changes at syncs. What follows the last sync is computed with the next one: the fast
        path has no state in the middle of a round.
        """
        self._waiting.append((shown, hidden))
        ready = self._last_sync() - self._done
        if ready <= 0:
            return
        whole = jax.tree.map(lambda *parts: np.concatenate(parts), *self._waiting)
        self._waiting = [jax.tree.map(lambda x: x[ready:], whole)]
        self._compute(Rows(self._done, *jax.tree.map(lambda x: x[:ready], whole)))

    def _last_sync(self) -> int:
        """The last step that can be computed."""
        sync = self._configuration.algorithm.sync
        return (
            self.step
            if sync.period is None
            else self.step - (self.step - sync.offset) % sync.period
        )

    def _compute(self, rows: Rows) -> None:
        with jax.enable_x64(self._dtype == "float64"):
            job = self._job_of(rows)
            program = job.program()
            group = Group(job, job.seeds, program)
            state = self._state
            if state is None:
                state = program.begin(group.key, group.drawn)
            self._state = None  # it is given to the program: what fails leaves nothing behind
            for current in job.plan_chunks(program, self._done):
                state, _ = group.advance(state, group.feed(current), current.shape)
            self._state, self._model, self._done = state, None, rows.steps

    def _job_of(self, rows: Rows) -> Job:
        if self._job is None:
            found = settings_of(
                *("Ongoing", rows, rows.steps, self._seed, None, self._dtype),
                *(None, None, None, False, 1),
            )
            self._job = admitted((self._configuration,), rows, found, ())
        return dataclasses.replace(self._job, stream=rows, steps=rows.steps)

    @property
    def model(self) -> Any:
        """The server's model, in the form of the problem, or its shared part; None before the first sync."""
        if self._model is None and self._state is not None and self._job is not None:
            with jax.enable_x64(self._dtype == "float64"):
                server, _ = self._job.program().models(self._state)
                whole = Flat(self._configuration.problem).unravel_shared(server)
                self._model = jax.tree.map(np.asarray, whole)
        return self._model

    def __getstate__(self) -> dict[str, Any]:
        model, state = self.model, jax.device_get(self._state)
        return {**vars(self), "_job": None, "_state": state, "_model": model}
