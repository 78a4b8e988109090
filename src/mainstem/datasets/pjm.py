"""PJM hourly load: one client per grid zone, with the next hour's load as the target."""

from pathlib import Path

import numpy as np

from mainstem.datasets import cache, formats
from mainstem.datasets.named_arrays import Array, Arrays
from mainstem.datasets.source import Source
from mainstem.datasets.table import Table
from mainstem.errors import BadData, DataUnavailable

PAGE = "https://www.kaggle.com/datasets/robikscube/hourly-energy-consumption"
FILE = "est_hourly.paruqet"  # Kaggle's spelling

ZONES = ("AEP", "COMED", "DAYTON", "DEOK", "DOM", "DUQ", "EKPC", "FE")
SERIES = (*ZONES, "NI", "PJME", "PJMW", "PJM_Load")
FIRST, LAST = np.datetime64("2013-06-01T01"), np.datetime64("2018-08-03T00")  # all zones report
LAGS = (1, 2, 3, 24, 25, 168)
CALENDAR = ("hour_sin", "hour_cos", "weekday_sin", "weekday_cos")


def kaggle() -> Source:
    """The source at Kaggle, which requires an account: the user downloads the file, `read` converts it."""

    def read() -> Arrays:
        path = cache.root() / FILE
        if not path.exists():
            raise DataUnavailable(f"download {FILE} from {PAGE} and put it at {path}")
        return convert(path)

    return Source("Kaggle", read)


def convert(path: Path) -> Arrays:
    """Kaggle's unordered table on a grid of every hour: float32, NaN where nothing was reported.

    Times are local, so one hour of each autumn occurs twice (the first is used) and one hour of each spring
    never occurs.
    """
    stored = formats.read(path)
    times = [name for name, column in stored.items() if column.dtype.kind == "M"]
    if len(times) != 1 or not set(SERIES) <= set(stored):
        raise BadData(f"{path.name} must hold one time column and {', '.join(SERIES)}")
    hours, first = np.unique(stored[times[0]].astype("M8[h]"), return_index=True)
    grid = np.arange(hours[0], hours[-1] + 1)
    made: dict[str, Array] = {}
    for name in SERIES:
        made[name] = np.full(len(grid), np.nan, dtype=np.float32)
        made[name][(hours - grid[0]).astype(np.int64)] = stored[name][first]
    return {**made, "Datetime": grid.astype("M8[s]")}


def decode(arrays: Arrays) -> Table:
    """A row per hour and zone: recent loads and the calendar as features, the next load as the target.

    Loads are in units of the zone's mean over the common window, so that large and small zones have the same
    scale. Rows without their target or one of their lags are left out.
    """
    hours = arrays["Datetime"].astype("M8[h]")
    window = (hours >= FIRST) & (hours <= LAST)
    loads = np.stack([arrays[zone][window] for zone in ZONES], axis=1).astype(np.float64)
    loads /= np.nanmean(loads, axis=0)
    start, end = max(LAGS), len(loads)
    lagged = np.stack([loads[start - lag : end - lag] for lag in LAGS], axis=2)
    calendar = np.broadcast_to(
        _calendar(hours[window][start:])[:, None, :], (*lagged.shape[:2], len(CALENDAR))
    )
    features = np.concatenate([lagged, calendar], axis=2)
    whole = np.isfinite(features).all(axis=2) & np.isfinite(loads[start:])
    keys = np.broadcast_to(np.array(ZONES), whole.shape)
    return Table(
        features[whole].astype(np.float32),
        loads[start:][whole].astype(np.float32),
        None,
        names=(*(f"lag_{lag}" for lag in LAGS), *CALENDAR),
        keys=keys[whole],
    )


def _calendar(hours: Array) -> Array:
    """Hour of day and day of week as points on circles, Monday first."""
    day = (hours.astype("M8[D]").astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday
    of_day = 2 * np.pi * (hours.astype(np.int64) % 24) / 24
    of_week = 2 * np.pi * day / 7
    turns = [np.sin(of_day), np.cos(of_day), np.sin(of_week), np.cos(of_week)]
    return np.stack(turns, axis=1)
