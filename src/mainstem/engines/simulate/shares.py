"""Shares: what each host stores of a state, and the state of the next run that is put together from them.

A leaf that one host has completely is stored under its number. Of the others, each part is stored under the
number and the place where it begins, as in "3@0,20".
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from mainstem.engines.simulate import hosts


def mine(leaves: Sequence[Any]) -> dict[str, np.ndarray]:
    """This host's share of a state, as named arrays."""
    found: dict[str, np.ndarray] = {}
    for n, leaf in enumerate(leaves):
        whole = not isinstance(leaf, jax.Array)
        if whole or leaf.is_fully_addressable or leaf.is_fully_replicated:
            if hosts.first():
                found[str(n)] = np.asarray(leaf)
            continue
        for shard in leaf.addressable_shards:
            if shard.replica_id == 0:
                begin = ",".join(str(at.start or 0) for at in shard.index)
                found[f"{n}@{begin}"] = np.asarray(shard.data)
    return found


def joined(shares: Mapping[str, np.ndarray]) -> dict[int, np.ndarray]:
    """The leaves by number, from the shares of all hosts."""
    parts: dict[int, list[tuple[list[int], np.ndarray]]] = {}
    for name, array in shares.items():
        number, _, begin = name.partition("@")
        if number.isdecimal():
            starts = [int(each) for each in begin.split(",")] if begin else [0] * array.ndim
            parts.setdefault(int(number), []).append((starts, array))
    return {number: _whole(each) for number, each in parts.items()}


def _whole(parts: list[tuple[list[int], np.ndarray]]) -> np.ndarray:
    if len(parts) == 1:
        return parts[0][1]
    ends = [np.add(starts, part.shape) for starts, part in parts]
    whole = np.empty(np.max(ends, axis=0), parts[0][1].dtype)
    for starts, part in parts:
        at = tuple(slice(s, s + n) for s, n in zip(starts, part.shape, strict=True))
        whole[at] = part
    return whole


def fitted(stored: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The leaf with this shape, which may have another number of absent clients; they get what the last one has.

    >>> fitted(np.array([1, 2, 3, 0]), (6,)), fitted(np.array([1, 2, 3, 0]), (3,))
    (array([1, 2, 3, 0, 0, 0]), array([1, 2, 3]))
    """
    cut = stored[tuple(slice(n) for n in shape)]
    more = [(0, n - m) for n, m in zip(shape, cut.shape, strict=True)]
    return np.pad(cut, more, mode="edge") if any(any(each) for each in more) else cut


def fits(stored: np.ndarray, leaf: Any) -> bool:
    """Whether a stored leaf is one of the state, up to absent clients in one axis."""
    if stored.dtype != leaf.dtype or stored.ndim != leaf.ndim:
        return False
    unequal = [n for n, m in zip(stored.shape, leaf.shape, strict=True) if n != m]
    return len(unequal) <= 1 and stored.size > 0
