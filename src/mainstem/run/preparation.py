"""Preparation: how a model's rows are filled and scaled, with what each client of the run has seen.

A file has the parts `missing` and `scale` of the stream, and arrays with a row for each client; see
docs/formats/model.md.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mainstem import experiment
from mainstem.errors import BadData
from mainstem.parts.missing import Missing
from mainstem.parts.scaling import Scale, following, seen
from mainstem.streams.hosted import Hosted

PREFIX = "preprocessing."  # of the names of arrays
PARTS = {"missing": Missing, "scale": Scale}


class Preparation(NamedTuple):
    """How rows are prepared; `arrays` is empty if the file does not say what the clients have seen."""

    missing: Missing | None
    scale: Scale | None
    arrays: Mapping[str, np.ndarray]  # [clients, ...]
    clients: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of a row before it is prepared, if it is known."""
        return next((each.shape[1:] for each in self.arrays.values() if each.ndim == 2), None)

    def width(self, features: int) -> int:
        """The number of features of a prepared row."""
        return features if self.missing is None else self.missing.width(features)

    def of(self, client: Any) -> dict[str, np.ndarray]:
        """What a client has seen."""
        if not self.arrays:
            how = " and ".join(str(part) for part in (self.missing, self.scale) if part is not None)
            raise BadData(
                f"predict: the model expects rows prepared by {how}, and its file does not have what the clients "
                "have seen: prepare them yourself, predict(x, prepared=True)"
            )
        if client is None and len(self.clients) == 1:
            (client,) = self.clients
        client = str(client) if str(client) in self.clients else client  # a key that is a number
        if client not in self.clients:
            known = ", ".join(map(repr, self.clients[:10])) + ", ..." * (len(self.clients) > 10)
            raise BadData(
                f"predict: client, whose row it is, must be one of {known}, got {client!r}"
            )
        k = self.clients.index(client)
        return {name: array[k] for name, array in self.arrays.items()}

    def applied(self, rows: np.ndarray, known: Mapping[str, np.ndarray]) -> np.ndarray:
        """The rows, each prepared as the next one of a client that has seen what is `known`."""
        return following(rows, known, self.missing, self.scale)


def parts_in(stream: Any) -> dict[str, Any] | None:
    """The tables of the parts that prepare the rows of a stream, or of a stream inside of it."""
    own = {name: stream[name] for name in PARTS if isinstance(stream.get(name), Mapping)}
    if own:
        return own
    inner = (parts_in(each) for each in stream.values() if isinstance(each, Mapping))
    return next((found for found in inner if found), None)


def history(stream: Any, steps: int, only: int | None) -> tuple[list[Any], dict[str, np.ndarray]]:
    """The names of the clients, and what each has seen in the first steps; of one, if it is the `only` one.

    Both are empty if the stream does not know.
    """
    if not isinstance(stream, Hosted):
        return [], {}
    asked = range(stream.clients) if only is None else [only]
    found = (stream.seen_by(k, steps) for k in asked)
    each = [known for known in found if known is not None]
    if len(each) < len(asked):
        return [], {}
    names = stream.names or range(stream.clients)
    arrays = {f"{PREFIX}{name}": np.stack([known[name] for known in each]) for name in each[0]}
    return [names[k] for k in asked], arrays


def preparation_of(
    about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> Preparation | None:
    """The preparation that the entries and the arrays of a file describe; None: rows are taken as they are."""
    named = about.get("preprocessing")
    if named is None:
        if arrays:
            raise BadData(f"it has the arrays {sorted(arrays)}, but names no preprocessing")
        return None
    if not isinstance(named, Mapping) or not named or not named.keys() <= PARTS.keys():
        raise BadData(f"preprocessing must be tables of missing and scale, got {named!r}")
    found = {name: _part(name, table) for name, table in named.items()}
    missing, scale = found.get("missing"), found.get("scale")
    known = {name.removeprefix(PREFIX): array for name, array in arrays.items()}
    if known:
        _check(known, missing, scale)
    count = len(next(iter(known.values()))) if known else 0
    return Preparation(missing, scale, known, _clients(about.get("clients"), count))


def _part(name: str, table: Any) -> Any:
    part = experiment.part(f"preprocessing {name}", dict(table), data=False)
    if not isinstance(part, PARTS[name]):
        raise BadData(f"preprocessing: {name} must fill or scale features, got {part!r}")
    return part


def _check(arrays: Mapping[str, np.ndarray], missing: Missing | None, scale: Scale | None) -> None:
    """Raises an error for arrays that are not those of these parts."""
    widths = {array.shape[1] for array in arrays.values() if array.ndim == 2}
    if len(widths) != 1 or any(array.ndim == 0 for array in arrays.values()):
        raise BadData(f"the arrays {PREFIX}* must have a row for each client, of one length")
    wanted = seen(np.zeros((0, *widths)), missing, scale)
    counts = {len(array) for array in arrays.values()}
    if len(counts) != 1 or {name: array.shape[1:] for name, array in arrays.items()} != {
        name: array.shape for name, array in wanted.items()
    }:
        raise BadData(f"the arrays {PREFIX}* must be {sorted(wanted)}, with a row for each client")
    for name, array in arrays.items():
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise BadData(f"{PREFIX}{name} must be finite numbers of float64")
        if name in ("count", "deviation") and (array < 0).any():
            raise BadData(f"{PREFIX}{name} must be at least 0")


def _clients(names: Any, count: int) -> tuple[Any, ...]:
    if names is None and not count:
        return ()
    wanted = f"clients must be {count} different names"
    if not isinstance(names, list) or not all(
        isinstance(each, str | int | float) for each in names
    ):
        raise BadData(f"{wanted}, got {names!r:.100}")
    if len(names) != count or len(set(names)) != count:
        raise BadData(f"{wanted}, got {len(set(names))}")
    return tuple(names)
