"""Keyed permutations: compute the image of one element, without a table of all.

Of `count` elements, the last few are swapped with random earlier ones, as in Fisher and Yates's shuffle. The
others are the cells of a grid, which a Feistel network permutes: in turn, each row moves by a random number of
cells that is a function of the row, and each column likewise.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random

ROUNDS = 6  # of the network, and twice as many for a grid of less than `SMALL` rows
SMALL = 32
FEW = 16  # elements that are only swapped
_APART = 0x9E3779B9  # between the numbers of the draws


@functools.partial(jax.jit, static_argnames="count")  # traced once, however often it is used
def permuted(key: Any, element: Any, count: int) -> Any:
    """The image of `element` in the permutation of 0 to count - 1 with this key (two words); both may be arrays.

    >>> sorted(permuted(random.root(7), np.arange(20), 20).tolist()) == [*range(20)]
    True
    """
    rows, columns = grid(count)
    cells = rows * columns
    unroll = jax.default_backend() != "cpu"  # there a loop is faster than one long formula

    def swapped(n: Any, place: Any) -> Any:
        last = jnp.uint32(count - 1 - n)
        other = _draw(key, last, 99) % (last + np.uint32(1))
        return jnp.where(place == last, other, jnp.where(place == other, last, place))

    def moved(n: Any, cell: Any) -> Any:
        row, column = cell
        column = _moved(column, _draw(key, row, 2 * n), columns)
        return _moved(row, _draw(key, column, 2 * n + 1), rows), column

    place = jnp.asarray(element).astype(jnp.uint32)
    place = jax.lax.fori_loop(0, count - cells, swapped, place, unroll=unroll)
    if cells == 1:
        return place.astype(jnp.int32)
    cell = place // np.uint32(columns), place % np.uint32(columns)
    turns = ROUNDS // 2 if rows >= SMALL else ROUNDS
    row, column = jax.lax.fori_loop(0, turns, moved, cell, unroll=unroll)
    return jnp.where(place < cells, row * np.uint32(columns) + column, place).astype(jnp.int32)


@functools.cache
def grid(count: int) -> tuple[int, int]:
    """The rows and columns of the grid: at most a few elements are left over, and it is not much longer than wide.

    >>> grid(60_000), grid(1797), grid(5)
    ((240, 250), (39, 46), (1, 1))
    """
    if count <= FEW:
        return 1, 1
    side = math.isqrt(count)
    rows = min(range(side, side // 2, -1), key=lambda rows: count % rows)
    return rows, count // rows


def _draw(key: Any, of: Any, number: Any) -> Any:
    """32 random bits for each of `of`; another `number` gives others."""
    return random.mix(of + key[0] ^ jnp.uint32(number) * np.uint32(_APART), key[1])


def _moved(place: Any, draw: Any, size: int) -> Any:
    """The place, moved by a random number of cells, around the end."""
    moved = place + ((draw >> 16) * np.uint32(size) >> 16)
    return jnp.where(moved < size, moved, moved - np.uint32(size))
