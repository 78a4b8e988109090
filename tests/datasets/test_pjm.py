"""PJM: the file that the user brings, and the table that is made from it."""

from pathlib import Path

import numpy as np
import pytest

from mainstem import datasets
from mainstem.datasets import formats, pjm
from mainstem.datasets.named_arrays import fingerprint
from mainstem.errors import BadData, DataUnavailable

HOUR = np.timedelta64(1, "h")


def test_the_refusal_names_the_file_and_where_to_put_it(cache_folder: Path) -> None:
    with pytest.raises(DataUnavailable) as refused:
        datasets.load("pjm_hourly")
    message = str(refused.value)
    assert f"download est_hourly.paruqet from {pjm.PAGE}" in message
    assert f"put it at {cache_folder / 'est_hourly.paruqet'}" in message
    assert "\n" not in message
    assert list(cache_folder.iterdir()) == []


def test_hours_are_ordered_completed_and_the_first_of_twins_is_used(tmp_path: Path) -> None:
    start = np.datetime64("2018-11-04T00", "s")
    stamps = np.array([start + 4 * HOUR, start, start + HOUR, start + HOUR, start + 2 * HOUR])
    loads = np.array([4, 0, 1, 100, 2], dtype=np.float64)
    table = {name: loads + n for n, name in enumerate(pjm.SERIES)}
    formats.write(tmp_path / pjm.FILE, {**table, "Datetime": stamps})
    made = pjm.convert(tmp_path / pjm.FILE)
    assert list(made) == [*pjm.SERIES, "Datetime"]
    np.testing.assert_array_equal(made["AEP"], [0, 1, 2, np.nan, 4])
    np.testing.assert_array_equal(made["COMED"], [1, 2, 3, np.nan, 5])
    np.testing.assert_array_equal(made["Datetime"], start + np.arange(5) * HOUR)
    assert made["AEP"].dtype == np.float32


def test_other_tables_are_refused(tmp_path: Path) -> None:
    formats.write(tmp_path / pjm.FILE, {"AEP": np.zeros(2)})
    with pytest.raises(BadData, match="one time column and AEP, COMED"):
        pjm.convert(tmp_path / pjm.FILE)


def test_the_kaggle_file_becomes_the_cached_one(shared: Path, cache_folder: Path) -> None:
    """As Kaggle has it: unordered, without the hours that nobody reported, twins included."""
    arrays = formats.read(shared / "pjm_hourly" / "pjm_hourly.parquet")
    reported = ~np.all([np.isnan(arrays[name]) for name in pjm.SERIES], axis=0)
    reported[[0, -1]] = True
    order = np.random.default_rng(0).permutation(np.flatnonzero(reported))
    given = {name: column[order] for name, column in arrays.items()}
    twin = {name: np.concatenate([column, column[:1]]) for name, column in given.items()}
    twin["AEP"][-1] = 1e6
    cache_folder.mkdir()
    formats.write(cache_folder / pjm.FILE, twin)
    folder = datasets.get("pjm_hourly")
    assert fingerprint(formats.read(folder / "pjm_hourly.parquet")) == fingerprint(arrays)
    assert datasets.status("pjm_hourly") == "cached"


def invented() -> dict[str, np.ndarray]:
    """Loads that encode their hour and zone: hour + 1000 * (zone + 1), 400 hours of the window."""
    hours = pjm.FIRST + np.arange(-5, 400) * HOUR
    count = np.arange(-5, 400)
    loads = {zone: (count + 1000.0 * (n + 1)) for n, zone in enumerate(pjm.ZONES)}
    return {**loads, "Datetime": hours.astype("M8[s]")}


def test_features_are_the_hours_before_the_target() -> None:
    arrays = invented()
    table = pjm.decode(arrays)
    assert len(table.target) == (400 - 168) * 8
    assert table.keys is not None
    assert table.keys[:9].tolist() == [*pjm.ZONES, "AEP"]
    mean = 1000 + np.arange(400).mean()
    own = table.keys == "AEP"
    hour = table.target[own] * mean - 1000
    np.testing.assert_allclose(hour, np.arange(168, 400), rtol=1e-4)
    for n, lag in enumerate((1, 2, 3, 24, 25, 168)):
        assert table.names[n] == f"lag_{lag}"
        np.testing.assert_allclose(table.features[own, n] * mean - 1000, hour - lag, atol=1e-2)


def test_the_calendar_is_that_of_the_target_hour() -> None:
    table = pjm.decode(invented())
    assert table.names[6:] == pjm.CALENDAR
    # the first target is 168 hours after Saturday 2013-06-01 01:00, a Saturday at one again
    hour, weekday = 2 * np.pi / 24, 2 * np.pi * 5 / 7
    wanted = [np.sin(hour), np.cos(hour), np.sin(weekday), np.cos(weekday)]
    np.testing.assert_allclose(table.features[0, 6:], wanted, atol=1e-6)


def test_a_missing_hour_takes_its_target_and_its_lags_away() -> None:
    arrays = invented()
    arrays["DUQ"][5 + 200] = np.nan
    table = pjm.decode(arrays)
    assert table.keys is not None
    counts = {zone: int((table.keys == zone).sum()) for zone in pjm.ZONES}
    assert counts["AEP"] == 232
    assert counts["DUQ"] == 232 - 1 - 6  # as a target once, as a lag six times
