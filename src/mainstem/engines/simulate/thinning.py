"""Thinning: the rows of a run summed over blocks of steps."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from mainstem.run.trace import SQUARED, per_client


class Thinning:
    """Makes rows for blocks of `every` steps out of the rows of single steps, which come in chunks of any length.

    A row of a block is the sum over its steps, or the error of the sum. The sum over an unfinished block is kept
    until the next rows come.
    """

    def __init__(self, every: int, clients: int):
        self.every = every
        self._countable = every * clients < 2**31  # on a device, where counts have 32 bits
        self.kept: dict[
            str, np.ndarray
        ] = {}  # by column: the sum over the steps of the unfinished block

    def __call__(self, rows: dict[str, Any], first: int) -> dict[str, Any]:
        """The rows of the blocks that end with one of these steps, of which `first` is the first."""
        if self.every == 1:
            return rows
        found = {}
        for name, row in rows.items():
            found[name] = row if per_client(name) else self._blocks(name, row, first)
        return found

    def _blocks(self, name: str, row: Any, first: int) -> Any:
        if jnp.issubdtype(row.dtype, jnp.integer) and not self._countable:
            row = np.asarray(row)
        xp = np if isinstance(row, np.ndarray) else jnp  # what is on a device stays there
        before = (first - 1) % self.every
        after = -(before + row.shape[-1]) % self.every
        around = [(0, 0)] * (row.ndim - 1) + [(before, after)]
        padded = xp.pad(row**2 if name in SQUARED else row, around)
        blocks = padded.reshape(*row.shape[:-1], -1, self.every)
        sums = blocks.sum(axis=-1, dtype=np.float64 if xp is np else row.dtype)
        if before:
            head = sums[..., :1] + self.kept[name]
            sums = xp.concatenate([head, sums[..., 1:]], axis=-1)
        if after:
            sums, self.kept[name] = sums[..., :-1], np.asarray(sums[..., -1:])
        return sums**0.5 if name in SQUARED else sums
