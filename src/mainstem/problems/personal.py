"""A prediction in two parts: one model that all share, and one of each client's own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Form, Linear, Pair, Problem, Residual, Sample, constant
from mainstem.problems.supervised import supervised
from mainstem.random import Key
from mainstem.spec import recorded

LOSSES = ("logistic", "squared")


@recorded
def personal(
    shared: int,
    own: int,
    loss: str = "squared",
    classes: int | None = None,
    intercept: bool = False,
    start: Any = None,
) -> Problem:
    r"""The prediction is the sum of a shared linear function and a client's own (Agarwal et al. 2020).

    .. math:: \ell(w^g, w_i) = (y - w^g \cdot x^g - w_i \cdot x^l)^2

    A sample shows (global features, local features), as `streams.split` makes them: `shared` and
    `own` are their numbers; a client with fewer local features has zeros in the rest. With
    ``classes=2`` labels are 0 and 1, the squared loss takes them as -1 and +1, and accuracy is
    measured; ``loss="logistic"`` wants such labels. `intercept` gives each part a constant of its
    own. `start` is a first model (shared, own), zeros if left out.

    >>> personal(shared=8, own=4).size
    12
    """
    shared = check.integer("personal", "shared", shared, least=1)
    own = check.integer("personal", "own", own, least=1)
    check.one_of("personal", "loss", loss, LOSSES)
    if classes not in (None, 2):
        raise check.refuse("personal", "classes", "be left out or 2", classes)
    if loss == "logistic" and classes is None:
        raise check.refuse("personal", "classes", "be 2 for the logistic loss", classes)
    sizes = shared + bool(intercept), own + bool(intercept)
    first = Pair(*(_start(start, n, size) for n, size in enumerate(sizes)))

    def extended(x: Any) -> Any:
        return jnp.pad(x, (0, 1), constant_values=1) if intercept else x

    def predicted(params: Any, x: Any) -> Any:
        return (params * extended(x)) @ jnp.ones_like(params)  # for many clients faster than a dot

    def aim(label: Any) -> Any:
        return label if classes is None else jnp.where(label == 1, 1, -1)  # of unsigned ones too

    def penalty(score: Any, label: Any) -> Any:
        if loss == "logistic":
            return jax.nn.softplus(jnp.where(label == 1, -score, score))
        return (score - aim(label)) ** 2

    def form(seen: Sample) -> Form:
        x = jnp.concatenate([extended(part) for part in seen.shown])
        y = aim(seen.hidden)
        return Form(2 * jnp.outer(x, x), 2 * y * x, jnp.asarray(y, x.dtype) ** 2)

    def init(key: Key) -> Pair:
        return Pair(constant(first.shared), constant(first.own))

    made = supervised(
        "personal",
        init,
        apply=lambda params, x: predicted(params.shared, x[0]) + predicted(params.own, x[1]),
        penalty=penalty,
        shape=((shared,), (own,)),
        classes=classes,
        convex=True,
        form=form if loss == "squared" else None,
        linear=Linear(
            lambda seen: jnp.concatenate([extended(part) for part in seen.shown]),
            slope=None if loss == "squared" else 1.0,
            bend=2.0 if loss == "squared" else 0.25,
        ),
    )
    told = Residual(
        widths=(shared, own),
        read=lambda seen: (*seen.shown, seen.hidden),
        shared=predicted,
        own=predicted,
        penalty=penalty,
    )
    return made._replace(residual=told)


def _start(start: Any, part: int, size: int) -> np.ndarray:
    """The first model's part of this size, from what the user gave."""
    if start is None:
        return np.zeros(size)
    wanted = f"be a pair of vectors, the {'own' if part else 'shared'} one of {size} numbers"
    try:
        array = np.asarray(start[part], np.float64)
    except (TypeError, ValueError, IndexError, KeyError):
        raise check.refuse("personal", "start", wanted, start) from None
    if len(start) != 2 or array.shape != (size,) or not np.isfinite(array).all():
        raise check.refuse("personal", "start", wanted, start)
    return array
