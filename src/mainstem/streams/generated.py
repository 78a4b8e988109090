"""Endless streams made on the device by a function of (key, step, client)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import At, Drawn, Form, Sample, Stream
from mainstem.random import Key
from mainstem.spec import recorded


@recorded
def generated(
    sample: Callable[..., Any],
    clients: int,
    steps: int | None = None,
    expected: Callable[[Any, Any], Form] | None = None,
    drawn: Callable[[int], Drawn] | None = None,
) -> Stream:
    """`sample(key, t, k)` gives (shown, hidden); the key is another one for every step and client.

    A third value, if given, is how many samples this is: 0 where nothing came. `expected(t, k)` is
    the expected loss of client k at step t as a quadratic form. `drawn(seed)` is what a run draws
    once for all its steps, as `Drawn(common, each)`, and becomes a fourth argument of `sample`, in
    which `each` is the client's own.

    >>> import jax
    >>> coin = generated(lambda key, t, k: (jax.random.normal(key, (3,)), t % 2), clients=5)
    >>> coin.steps is None
    True
    """
    if not callable(sample):
        raise check.refuse("generated", "sample", "be a function of (key, step, client)", sample)
    clients = check.integer("generated", "clients", clients, least=1)
    if steps is not None:
        check.integer("generated", "steps", steps, least=1)

    if expected is not None and not callable(expected):
        raise check.refuse("generated", "expected", "be a function of (step, client)", expected)

    if drawn is not None and not callable(drawn):
        raise check.refuse("generated", "drawn", "be a function of the seed", drawn)

    def make(resident: Any, piece: Any, at: At) -> Sample:
        once = () if drawn is None else (resident[1],)
        return Sample(*sample(at.key, at.t, at.k, *once))

    return Stream(
        clients,
        steps,
        resident=(),
        chunk=lambda seed, first, last: (),
        sample=make,
        rows=lambda: None,
        expected=expected,
        drawn=drawn,
    )


@recorded
def alternating(
    clients: int, mean: float = 2.0, variance: float = 5.0, dimension: int = 1
) -> Stream:
    """The targets of Mitra et al. 2021, Section VII: a at even steps, -a at odd ones, a ~ N(mean, variance).

    For `problems.quadratic`.
    """
    clients = check.integer("alternating", "clients", clients, least=1)
    dimension = check.integer("alternating", "dimension", dimension, least=1)
    mean = check.number("alternating", "mean", mean)
    spread = float(np.sqrt(check.at_least("alternating", "variance", variance, 0)))

    def sample(key: Key, t: Any, k: Any) -> tuple[tuple[()], jax.Array]:
        target = mean + spread * random.normal(key, (dimension,))
        return (), jnp.where(t % 2 == 0, target, -target)

    def expected(t: Any, k: Any) -> Form:
        target = jnp.where(t % 2 == 0, mean, -mean) * jnp.ones(dimension)
        second = 0.5 * dimension * (mean**2 + spread**2)
        return Form(jnp.asarray(1.0), target, jnp.asarray(second))

    return generated(sample, clients, expected=expected)
