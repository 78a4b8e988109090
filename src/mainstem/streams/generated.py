"""Generated streams: samples computed on the device by a function of (key, step, client)."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from mainstem import check, random
from mainstem.base import At, Drawn, Form, Sample, Stream, constant
from mainstem.value import at_least, integer, number, preset, static, value


@value
class Generated(Stream):
    """A stream computed by user functions; `generated` creates it.

    >>> Generated(lambda key, t, k: ((), t), clients=5).chunk(0, 1, 3)
    ()
    """

    make: Callable[..., Any] = static()
    clients: int = integer(least=1)
    steps: int | None = integer(default=None, least=1)
    expected: Callable[[Any, Any], Form] | None = static(default=None)
    draw: Callable[[int], Drawn] | None = static(default=None)

    def admit(self) -> None:
        if not callable(self.make):
            raise check.refuse(
                "generated", "sample", "be a function of (key, step, client)", self.make
            )
        if self.expected is not None and not callable(self.expected):
            raise check.refuse(
                "generated", "expected", "be a function of (step, client)", self.expected
            )
        if self.draw is not None and not callable(self.draw):
            raise check.refuse("generated", "drawn", "be a function of the seed", self.draw)

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        once = () if self.draw is None else (drawn,)
        return Sample(*self.make(at.key, at.t, at.k, *once))

    def drawn(self, seed: int) -> Drawn | None:
        return None if self.draw is None else self.draw(seed)


@preset(
    Generated, sample="make", clients="clients", steps="steps", expected="expected", drawn="draw"
)
def generated(
    sample: Callable[..., Any],
    clients: int,
    steps: int | None = None,
    expected: Callable[[Any, Any], Form] | None = None,
    drawn: Callable[[int], Drawn] | None = None,
) -> Generated:
    """A stream of `sample(key, t, k)`, which returns (shown, hidden); each step and client has its own key.

    An optional third value is the number of samples, 0 for none. `expected(t, k)` is the expected
    loss of client k at step t as a quadratic form. `drawn(seed)` is what a run draws once for all its
    steps, as `Drawn(common, each)`; it is the fourth argument of `sample`, in which `each` is the
    client's own entry.

    >>> import jax
    >>> coin = generated(lambda key, t, k: (jax.random.normal(key, (3,)), t % 2), clients=5)
    >>> coin.steps is None
    True
    """
    return Generated(sample, clients, steps, expected, drawn)


@value
class alternating(Stream):
    """The targets of Mitra et al. 2021, Section VII: a at even steps, -a at odd ones, a ~ N(mean, variance).

    For `problems.quadratic`.

    >>> alternating(clients=20, variance=1.0)
    alternating(clients=20, variance=1.0)
    """

    clients: int = integer(least=1)
    mean: float = number(default=2.0)
    variance: float = at_least(0, default=5.0)
    dimension: int = integer(default=1, least=1)

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        spread = jnp.sqrt(constant(self.variance))
        target = constant(self.mean) + spread * random.normal(at.key, (self.dimension,))
        return Sample((), jnp.where(at.t % 2 == 0, target, -target))

    def expected(self, t: Any, k: Any) -> Form:
        mean, variance = constant(self.mean), constant(self.variance)
        target = jnp.where(t % 2 == 0, mean, -mean) * jnp.ones(self.dimension)
        return Form(jnp.asarray(1.0), target, 0.5 * self.dimension * (mean**2 + variance))
