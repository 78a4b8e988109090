"""Streams from arrays in memory: the rows stay on the device, indices travel."""

from typing import Any

import numpy as np

from mainstem import check
from mainstem.base import At, Sample, Stream
from mainstem.errors import BadData
from mainstem.spec import recorded
from mainstem.streams.deal import Deal, evenly


@recorded
def arrays(
    features: Any,
    target: Any,
    clients: int | None = None,
    deal: Deal | None = None,
    keys: Any = None,
) -> Stream:
    """Rows of `features` with their `target`, dealt to `clients` (evenly unless told otherwise).

    `keys` names each row's client, for ``deal=by_key()``.

    >>> import numpy as np
    >>> stream = arrays(np.ones((10, 3)), np.zeros(10), clients=4)
    >>> stream.chunk(0, 1, 5).shape
    (5, 4)
    """
    shown, hidden = _rows("features", features), _rows("target", target)
    if len(shown) != len(hidden):
        raise BadData(f"arrays: {len(shown)} rows of features but {len(hidden)} targets")
    if len(shown) == 0:
        raise BadData("arrays: there are no rows")
    dealt = (
        evenly() if deal is None else check.instance("arrays", "deal", deal, Deal, "evenly()")
    ).to(hidden, keys, clients)
    for name, array in (("features", shown), ("target", hidden)):
        _refuse_gaps(name, array, dealt.owner)

    def sample(resident: Any, row: Any, at: At) -> Sample:
        return Sample(resident[0][row], resident[1][row])

    return Stream(
        dealt.clients,
        dealt.steps,
        resident=(shown, hidden),
        chunk=dealt.rows,
        sample=sample,
        rows=lambda: Sample(shown, hidden),
    )


def _rows(name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError:
        raise BadData(f"arrays: {name} must have rows of equal length") from None
    if array.ndim == 0 or not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        got = f"{array.dtype} of shape {array.shape}"
        raise BadData(f"arrays: {name} must be rows of numbers, got {got}")
    return array


def _refuse_gaps(name: str, array: np.ndarray, owner: Any) -> None:
    """Refuse NaN and infinity, naming the first row that has one, and whose it is."""
    if not np.issubdtype(array.dtype, np.floating):
        return
    finite = np.isfinite(array)
    if finite.all():
        return
    row = int(np.argwhere(~finite)[0][0])
    bad = array[row][~finite[row]].flat[0] if array.ndim > 1 else array[row]
    raise BadData(f"arrays: {name} row {row} ({owner(row)}) holds {bad}")
