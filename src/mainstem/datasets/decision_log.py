"""Decision log: decisions that another policy took, with their probabilities and rewards."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mainstem.datasets.named_arrays import Array
from mainstem.errors import BadData

POSITIONS = 3  # places on ZOZOTOWN's page: left, centre, right


class Log(NamedTuple):
    """N decisions among A items, in time order. Only the reward of the chosen item is known."""

    items: NDArray[np.float32]
    """[A, F]: the features of each item."""
    affinity: NDArray[np.float32]
    """[N, A]: how often the user had clicked each item before."""
    position: NDArray[np.int32]
    """[N]: where on the page the item was shown, 0..2."""
    action: NDArray[np.int32]
    """[N]: the item that was shown, a row of `items`."""
    reward: NDArray[np.float32]
    """[N]: what came of it."""
    propensity: NDArray[np.float32]
    """[N]: the probability with which it was chosen, in (0, 1]."""
    keys: NDArray[np.str_]
    """[N]: the segment of users that each row belongs to, as a client."""


def logged(
    *,
    items: Array,
    affinity: Array,
    position: Array,
    action: Array,
    reward: Array,
    propensity: Array,
    keys: Array,
) -> Log:
    """The columns as a `Log`; `BadData` names the first row that cannot be learnt from.

    A propensity is checked as float32: one that underflows to zero cannot be divided by either.

    >>> import numpy as np
    >>> one, two = np.ones(1), np.ones((1, 2))
    >>> logged(items=np.eye(2), affinity=two, position=one, action=2 * one, reward=one,
    ...        propensity=one / 2, keys=np.array(["a"]))
    Traceback (most recent call last):
    mainstem.errors.BadData: log: action row 0 holds 2.0, wants an item from 0 to 1
    """
    odds = propensity.astype(np.float32)
    last = len(items) - 1
    _refuse("action", action, np.isin(action, np.arange(last + 1)), f"an item from 0 to {last}")
    _refuse("propensity", propensity, (odds > 0) & (odds <= 1), "a probability in (0, 1]")
    _refuse("reward", reward, np.isfinite(reward), "a finite number")
    places = np.isin(position, np.arange(POSITIONS))
    _refuse("position", position, places, f"a place from 0 to {POSITIONS - 1}")
    return Log(
        items.astype(np.float32, order="C"),
        affinity.astype(np.float32, order="C"),
        position.astype(np.int32),
        action.astype(np.int32),
        reward.astype(np.float32),
        odds,
        keys,
    )


def _refuse(name: str, column: Array, right: Array, wanted: str) -> None:
    if not right.all():
        row = int(np.argmin(right))
        raise BadData(f"log: {name} row {row} holds {column[row]}, wants {wanted}")
