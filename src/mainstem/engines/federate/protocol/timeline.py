"""The timeline of a run: what its status counted, kept at ever wider intervals, so that it has bounded room.

A moment is kept once for each of the WIDTHS, in seconds: in slot (time // width) % SLOTS, over the moment that was
there SLOTS widths before. So the last minutes are there by the second, and the last months by the day. Counts only
grow: what happened between two moments is their difference, however far they are apart.
"""

import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

WIDTHS = (1, 16, 256, 4096, 65536)  # seconds
SLOTS = 256
COMPARED = {
    "candidate": ("samples", "loss", "candidate"),
    "alone": ("clients", "samples", "loss", "alone"),
}  # sums of losses beside those of other models, where there are any
COLUMNS = ("samples", "loss", "bytes_up", "staleness", "norm")  # with a number for each client

Moment = dict[str, Any]  # JSON


def moment(status: Mapping[str, Any]) -> Moment:
    """What a status counts."""
    clients = status["clients"].values()
    refused: Counter[str] = Counter()
    for each in clients:
        refused.update(each["refused"])
    return {
        **{name: status[name] for name in ("time", "epoch", "version", "bytes_down", "candidate")},
        "alone": status.get("alone"),  # not in statuses of earlier versions
        "clients": list(status["clients"]),
        **{name: [each[name] for each in clients] for name in COLUMNS},
        "refused": dict(refused),
        "states": dict(Counter(each["state"] for each in clients)),
    }


def pack(moment: Moment) -> bytes:
    """A moment as it is kept on the NATS server."""
    return json.dumps(moment).encode()


def unpack(data: bytes) -> Moment:
    """The inverse of `pack`. Raises ValueError if it is no moment."""
    found = json.loads(data)
    check(found)
    return dict(found)


def check(moment: Any) -> None:
    """Raises ValueError if this is no moment."""
    try:
        columns = [moment[name] for name in COLUMNS]
        counts = (*moment["refused"].values(), *moment["states"].values())
        sums = [(moment.get(other), names) for other, names in COMPARED.items()]
        compared = [found[name] for found, names in sums if found is not None for name in names]
        totals = [moment[name] for name in ("time", "version", "bytes_down")]
        for number in (*itertools.chain(*columns), *counts, *compared, *totals):
            number / 1.0  # a number, and no larger than the largest float
        whole = all(len(column) == len(moment["clients"]) for column in columns)
        whole = whole and math.isfinite(moment["time"])
        names = (*moment["clients"], *moment["refused"], *moment["states"])
        whole = whole and all(isinstance(name, str) for name in names)
    except (TypeError, LookupError, AttributeError, OverflowError) as error:
        raise ValueError(f"this is no moment: {error}") from None
    if not whole:
        raise ValueError("this is no moment: its columns or its names are others")


Place = tuple[int, int]  # a width and a slot


def places(time: float, before: float = -math.inf) -> list[Place]:
    """Where a moment is kept, if the one before it was at `before`.

    >>> places(1000.0), places(1000.9, 1000.0), places(1008.5, 1007.9)
    ([(1, 232), (16, 62), (256, 3), (4096, 0), (65536, 0)], [], [(1, 240), (16, 63)])
    """
    return [
        (width, int(time // width) % SLOTS) for width in WIDTHS if time // width != before // width
    ]


class Timeline:
    """The moments of a run that are kept; `whole`: not only some of them."""

    def __init__(self, whole: bool = True) -> None:
        self.whole = whole
        self._kept: dict[Place, Moment] = {}
        self._latest = -math.inf

    @property
    def empty(self) -> bool:
        """Whether it has no moment."""
        return not self._kept

    def add(self, moment: Moment) -> None:
        """Adds the newest moment; the same one again changes nothing."""
        for place in places(moment["time"], self._latest):
            self._kept[place] = moment
        self._latest = moment["time"]

    def put(self, place: Place, moment: Moment) -> None:
        """Adds a moment that was kept at this place."""
        self._kept.setdefault(place, moment)

    def fill(self, before: "Timeline") -> None:
        """Adds the moments of an earlier one where this one has none."""
        for place, moment in before._kept.items():
            self.put(place, moment)

    def moments(self, now: float) -> list[Moment]:
        """The moments, oldest first; where there are some by the second, none that are further apart."""
        found: dict[float, Moment] = {}
        covered = now + WIDTHS[0]
        for width in WIDTHS:
            new = {
                each["time"]: each
                for (wide, _), each in self._kept.items()
                if wide == width and now - SLOTS * width < each["time"] < covered
            }
            found |= new
            covered = min([covered, *new])
        return [found[time] for time in sorted(found)]
