"""Streams of rows with any keys, by feature hashing: features may appear and vanish."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mainstem import check
from mainstem.errors import BadData
from mainstem.streams.arrays import arrays
from mainstem.streams.deal import Deal
from mainstem.streams.frames import as_arrow
from mainstem.streams.labels import Classes
from mainstem.streams.sparse import from_dicts


def hashed(
    rows: Any,
    target: Any,
    width: int,
    *,
    keys: Any = None,
    clients: int | None = None,
    deal: Deal | None = None,
    classes: Classes = False,
) -> arrays:
    """Rows with any keys, hashed to `width` features, as the stream `arrays`.

    `rows` are dicts or a data frame. Each row may have other keys: a number is a feature under its key, a word is
    the feature `key=word`, and None is no feature. `target` and `keys` (each row's client) are sequences, or name
    an entry of the rows. A federated run with `features = "hashed"` hashes in the same way.

    >>> rows = [{"heat": 2.5, "state": "on"}, {"wind": 7, "state": "off"}, {"heat": 1.0}]
    >>> stream = hashed(rows, ["good", "bad", "good"], width=16, clients=1)
    >>> stream.labels, stream.features.row(1).tolist()
    (('bad', 'good'), [...])
    """
    width = check.integer("hashed", "width", width, least=1)
    listed = _dicts(rows)
    named = {name for name in (target, keys) if isinstance(name, str)}
    return arrays(
        from_dicts(
            "hashed", ({k: v for k, v in row.items() if k not in named} for row in listed), width
        ),
        _taken(listed, "target", target),
        clients,
        deal,
        None if keys is None else _taken(listed, "keys", keys),
        classes,
    )


def _dicts(rows: Any) -> list[Mapping[Any, Any]]:
    if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        return list(rows)
    return list(as_arrow("hashed", rows).to_pylist())


def _taken(rows: list[Mapping[Any, Any]], parameter: str, given: Any) -> Any:
    """A column that is named, or given itself."""
    if not isinstance(given, str):
        return given
    for n, row in enumerate(rows):
        if row.get(given) is None:
            raise BadData(f"hashed: row {n} has no {given!r}, which is its {parameter}")
    return np.asarray([row[given] for row in rows])
