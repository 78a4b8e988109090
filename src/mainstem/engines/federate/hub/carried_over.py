"""Carries the server's state over to another roster: rows of clients that stay, and new rows for those that come.

Which axis of an array counts clients is found by asking what its shape would be with one client more.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from mainstem.errors import BadSpec


def carried_over(
    old: Any, fresh: Any, shapes: Callable[[int], Any], rows: Sequence[tuple[int, int]]
) -> Any:
    """The tree `fresh`, with what `old` has: `rows` are pairs of a new index and the old one.

    `shapes(clients)` is the tree with the shapes that arrays have for so many clients.
    """
    leaves, tree = jax.tree.flatten(fresh)
    before, one, two = (jax.tree.leaves(each) for each in (old, shapes(1), shapes(2)))
    if not len(before) == len(leaves) == len(one) == len(two):
        raise BadSpec("change: the server's state has other parts with another roster")
    found = [
        _carried(np.asarray(was), np.asarray(new), _axis(a.shape, b.shape), rows)
        for was, new, a, b in zip(before, leaves, one, two, strict=True)
    ]
    return jax.tree.unflatten(tree, [jax.numpy.asarray(each) for each in found])


def _axis(one: tuple[int, ...], two: tuple[int, ...]) -> int | None:
    """The axis that counts clients."""
    return next((n for n, (a, b) in enumerate(zip(one, two, strict=True)) if a != b), None)


def _carried(
    old: np.ndarray, fresh: np.ndarray, axis: int | None, rows: Sequence[tuple[int, int]]
) -> np.ndarray:
    if axis is None:
        if old.shape != fresh.shape:
            raise BadSpec("change: the server's state has another size with these rules")
        return old
    result = np.moveaxis(fresh.copy(), axis, 0)
    source = np.moveaxis(old, axis, 0)
    if result.shape[1:] != source.shape[1:]:
        raise BadSpec("change: the server's state has another size with these rules")
    for new, was in rows:
        result[new] = source[was]
    return np.moveaxis(result, 0, axis)
