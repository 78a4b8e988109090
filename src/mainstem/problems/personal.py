"""Personal problems: a prediction that is the sum of a shared part and each client's own part."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Form, Linear, Pair, Residual, Sample, constant
from mainstem.problems.supervised import Supervised, softplus
from mainstem.random import Key
from mainstem.value import flag, integer, leaf, preset, set_field, static, value

LOSSES = ("logistic", "squared")


def _loss(owner: str, name: str, given: Any) -> str:
    return check.one_of(owner, "loss", given, LOSSES)


def _two(owner: str, name: str, given: Any) -> int:
    if given != 2:
        raise check.refuse(owner, name, "be left out or 2", given)
    return 2


@value
class Personal(Supervised):
    """A linear prediction in two parts, a shared and an own one; see `personal`.

    >>> Personal(shared=8, own=4).parameters
    12
    """

    shared: int = integer(least=1)
    own: int = integer(least=1)
    cost: str = static(default="squared", checked=_loss)
    classes: int | None = static(default=None, checked=_two)
    intercept: bool = flag(default=False)
    start: Any = leaf(default=None)  # a `Pair` of vectors; None: zeros

    convex = True
    rounding = None

    def admit(self) -> None:
        if self.cost == "logistic" and self.classes is None:
            raise check.refuse("personal", "classes", "be 2 for the logistic loss", self.classes)
        if self.start is not None:
            first = Pair(*(_start(self.start, n, size) for n, size in enumerate(self._sizes)))
            set_field(self, "start", first)

    @property
    def shape(self) -> Any:
        return (self.shared,), (self.own,)

    @property
    def form(self) -> Any:
        return self._form if self.cost == "squared" else None

    @property
    def linear(self) -> Linear:
        slope, bend = (None, 2.0) if self.cost == "squared" else (1.0, 0.25)
        return Linear(self._row, slope, bend, _column, self._seen_penalty)

    @property
    def residual(self) -> Residual:
        return Residual(
            widths=(self.shared, self.own),
            read=_read,
            shared=self._predicted,
            own=self._predicted,
            penalty=self.penalty,
        )

    def init(self, key: Key) -> Pair:
        if self.start is None:
            return Pair(*(jnp.zeros(size) for size in self._sizes))
        return Pair(*(constant(each) for each in self.start))

    def apply(self, params: Pair, x: Any) -> Any:
        return self._predicted(params.shared, x[0]) + self._predicted(params.own, x[1])

    def penalty(self, scores: Any, target: Any) -> Any:
        if self.cost == "logistic":
            return softplus(jnp.where(target == 1, -scores, scores))
        return (scores - self._aim(target)) ** 2

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.shared + self.intercept, self.own + self.intercept

    def _extended(self, x: Any) -> Any:
        return jnp.pad(x, (0, 1), constant_values=1) if self.intercept else x

    def _predicted(self, params: Any, x: Any) -> Any:
        ones = jnp.ones_like(params)
        return (params * self._extended(x)) @ ones  # for many clients faster than a dot

    def _aim(self, label: Any) -> Any:
        if self.classes is None:
            return label
        return jnp.where(label == 1, 1, -1)  # for unsigned labels too

    def _row(self, seen: Sample) -> Any:
        return jnp.concatenate([self._extended(each) for each in seen.shown])

    def _seen_penalty(self, scores: Any, seen: Sample) -> Any:
        return self.penalty(scores[0], seen.hidden)

    def _form(self, seen: Sample) -> Form:
        x, y = self._row(seen), self._aim(seen.hidden)
        return Form(2 * jnp.outer(x, x), 2 * y * x, jnp.asarray(y, x.dtype) ** 2)


@preset(
    Personal,
    shared="shared",
    own="own",
    loss="cost",
    classes="classes",
    intercept="intercept",
    start="start",
)
def personal(
    shared: int,
    own: int,
    loss: str = "squared",
    classes: int | None = None,
    intercept: bool = False,
    start: Any = None,
) -> Personal:
    r"""A prediction that is the sum of a shared linear function and a client's own (Agarwal et al. 2020).

    .. math:: \ell(w^g, w_i) = (y - w^g \cdot x^g - w_i \cdot x^l)^2

    A sample shows (global features, local features), as `streams.split` makes them; `shared` and
    `own` are how many of each there are. A client with fewer local features has zeros in the rest. With
    ``classes=2`` labels are 0 and 1, the squared loss takes them as -1 and +1, and accuracy is
    measured; ``loss="logistic"`` needs such labels. `intercept` adds a constant to each part.
    `start` is the first model (shared, own); zeros if left out.

    >>> personal(shared=8, own=4).parameters
    12
    >>> personal(shared=8, own=4, loss="logistic", classes=2)
    personal(shared=8, own=4, loss='logistic', classes=2)
    """
    return Personal(shared, own, loss, classes, intercept, start)


def _column(params: Pair) -> Any:
    return jnp.concatenate(params)[:, None]


def _read(seen: Sample) -> tuple[Any, Any, Any]:
    return (*seen.shown, seen.hidden)


def _start(start: Any, place: int, size: int) -> np.ndarray:
    """One part of the first model, of this size, from what the user gave."""
    wanted = f"be a pair of vectors, the {'own' if place else 'shared'} one of {size} numbers"
    try:
        array = np.asarray(start[place], np.float64)
    except (TypeError, ValueError, IndexError, KeyError):
        raise check.refuse("personal", "start", wanted, start) from None
    if len(start) != 2 or array.shape != (size,) or not np.isfinite(array).all():
        raise check.refuse("personal", "start", wanted, start)
    return array
