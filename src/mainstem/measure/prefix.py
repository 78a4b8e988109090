"""Prefix of a stream: its first steps, on which the constants are measured."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random, replay
from mainstem.base import Domain, Flat, Problem, Sampler, Stream, cast
from mainstem.errors import BadData
from mainstem.measure.hindsight import best_fixed
from mainstem.measure.question import Hindsight, Question
from mainstem.measure.weighted_losses import revealed, weighted

BATCH = 256  # samples whose gradients are in memory at once
REST = slice(1, None)


class Prefix:
    """The samples of the first `steps` steps of a run with this `seed`, in float64.

    `domain` contains the models and the best fixed model (default: the problem's domain); `radius` is
    that of the ball for problems without a minimiser.
    """

    def __init__(
        self,
        problem: Problem,
        stream: Stream,
        steps: int,
        *,
        seed: int = 0,
        domain: Domain | None = None,
        radius: float = 10.0,
    ):
        check.instance("prefix", "problem", problem, Problem, "linear(features=5)")
        check.instance("prefix", "stream", stream, Stream, "digits(clients=100)")
        if problem.informative is not None:
            raise BadData("prefix: what is seen depends on what was decided: measure a run instead")
        most = stream.steps
        self.steps = check.integer("prefix", "steps", steps, least=1, most=most)
        self.problem, self.stream = problem, stream
        self.seed = check.integer("prefix", "seed", seed, least=0)
        chosen = problem.domain if domain is None else domain
        self.domain = check.instance("prefix", "domain", chosen, Domain, "box(-1, 1)")
        self.radius = check.positive("prefix", "radius", radius)

    @functools.cached_property
    def start(self) -> np.ndarray:
        """The first model, as a vector."""
        with jax.enable_x64(True):
            first = _first_model(self.problem, random.root(self.seed))
            return np.asarray(self.domain.project(first), np.float64)

    @functools.cached_property
    def question(self) -> Question:
        """The definition of the best fixed model."""
        return Question(self.problem, self.stream, self.domain, self.seed, self.radius, self.start)

    @functools.cached_property
    def best(self) -> Hindsight:
        """The best fixed model for these steps."""
        return self.bests([self.steps])

    def bests(self, prefixes: Iterable[Any], expected: bool = False) -> Hindsight:
        """The best fixed model for each prefix, of the drawn losses or of the `expected` ones."""
        question = self.question._replace(expected=expected)
        return best_fixed(question, [int(t) for t in prefixes])

    def shares(self, prefixes: Iterable[Any]) -> list[np.ndarray]:
        """For each prefix, the share of each distinct sample."""
        *found, last = weighted(self.question, [int(t) for t in [*prefixes, self.steps]])[1]
        return [share[last > 0] for share in found]

    @functools.cached_property
    def rows(self) -> tuple[Any, np.ndarray]:
        """The distinct samples as they were seen, and the share of each."""
        rows, (shares,) = weighted(self.question, [self.steps])
        came = np.flatnonzero(shares)
        with jax.enable_x64(True):
            rows = jax.tree.map(lambda x: jnp.asarray(x[came]), cast(rows, "float64"))
            return revealed(cast(self.problem, "float64"), rows), shares[came]

    def each(self, of: Callable[..., Any], *given: Any) -> Any:
        """`of(sample, *given)` for every distinct sample that was seen, `BATCH` at a time."""
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, _mapped(of)(self.rows[0], *given))

    def by_step(self, of: Callable[..., Any], *given: Any) -> Any:
        """`of(seen, here, *given)` for each step; `here` is 1 for each client with a sample, otherwise 0."""
        return self.by_stretch(of, 1, _as_it_is, *given)

    def by_stretch(
        self, of: Callable[..., Any], length: int, then: Callable[[Any], Any], *given: Any
    ) -> Any:
        """`then` of the sum of `of` over each segment of `length` steps.

        Steps that do not fill a segment are omitted.
        """
        stream, count = self.stream, self.steps // length
        key = random.root(self.seed)

        def cut(x: Any) -> Any:
            return np.asarray(x)[: count * length].reshape(count, length, *np.shape(x)[1:])

        with jax.enable_x64(True):
            steps = np.arange(1, count * length + 1)
            sampler, drawn, pieces = replay.given(stream, self.seed, 1, count * length, "float64")
            parts = jax.tree.map(cut, (pieces, steps))
            ways: Any = {"clients": stream.clients, "of": of, "then": then}
            found = _summed(
                cast(self.problem, "float64"), sampler, (key, drawn), parts, given, **ways
            )
            return jax.tree.map(np.asarray, found)


def _as_it_is(sums: Any) -> Any:
    return sums


@functools.partial(jax.jit, static_argnames=("clients", "of", "then"))
def _summed(
    problem: Problem,
    sampler: Sampler,
    run: Any,
    parts: Any,
    given: Any,
    *,
    clients: int,
    of: Callable[..., Any],
    then: Callable[[Any], Any],
) -> Any:
    """`then` of the sum of `of` over each segment; `run` is (key, drawn)."""
    (key, drawn), ks = run, jnp.arange(clients)

    def one(step: Any) -> Any:
        pieces, t = step
        return of(*replay.seen(problem, sampler, key, drawn, pieces, t, ks), *given)

    def stretch(steps: Any) -> Any:
        first, rest = (jax.tree.map(lambda x, part=part: x[part], steps) for part in (0, REST))

        def add(total: Any, step: Any) -> Any:
            return jax.tree.map(jnp.add, total, one(step)), None

        return then(jax.lax.scan(add, one(first), rest)[0])

    return jax.lax.map(stretch, parts)


@jax.jit
def _first_model(problem: Problem, key: Any) -> Any:
    return replay.first_model(Flat(problem), key)


@functools.lru_cache(maxsize=32)
def _mapped(of: Callable[..., Any]) -> Any:
    """`of` for all samples; cached in compiled form."""

    def all_of(seen: Any, *given: Any) -> Any:
        return jax.lax.map(lambda one: of(one, *given), seen, batch_size=BATCH)

    return jax.jit(all_of)
