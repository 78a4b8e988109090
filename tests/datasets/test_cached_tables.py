"""Every table out of a filled cache: shapes, types, ranges, and facts known from its papers."""

from pathlib import Path

import numpy as np
import pytest

from mainstem import datasets
from mainstem.datasets import Table
from mainstem.datasets.formats import read
from mainstem.datasets.named_arrays import fingerprint

# name: rows, features, classes, rows held out (from the UCI, OpenML and PJM pages of the sets)
SIZES = {
    "mnist": (70_000, (28, 28), 10, 10_000),
    "usps": (9_298, (256,), 10, 2_007),
    "letter": (20_000, (16,), 26, 0),
    "pendigits": (10_992, (16,), 10, 3_498),
    "satimage": (6_435, (36,), 6, 2_000),
    "shuttle": (58_000, (9,), 7, 14_500),
    "covtype": (581_012, (54,), 7, 0),
    "room_occupancy": (10_129, (16,), 4, 0),
    "air_quality": (8_991, (5,), None, 0),  # 9,357 hours, 366 of them without sensors
    "appliances_energy": (19_735, (25,), None, 0),
    "elec2": (45_312, (6,), 2, 0),
}


@pytest.mark.parametrize("name", SIZES)
def test_tables_are_whole(filled: Path, name: str) -> None:
    assert datasets.status(name) == "cached"
    assert datasets.get(name) == filled / name
    table = datasets.load(name)
    rows, shape, classes, held_out = SIZES[name]
    assert table.features.shape == (rows, *shape)
    assert (table.classes, table.held_out) == (classes, held_out)
    check_scaled(table)
    if classes is None:
        assert table.target.dtype == np.float32
        assert (table.target.min(), table.target.max()) == (0, 1)
    else:
        assert table.target.dtype == np.int32
        assert np.unique(table.target).tolist() == list(range(classes))


def check_scaled(table: Table) -> None:
    assert table.features.dtype == np.float32
    assert table.features.flags.c_contiguous
    assert table.target.shape == table.features.shape[:1]
    assert (table.features.min(), table.features.max()) == (0, 1)
    assert np.isfinite(table.features).all()
    assert len(table.names) in (0, table.features.shape[1])
    assert table.keys is None


def test_every_name_is_tested_here() -> None:
    assert {*SIZES, "sensorless", "pjm_hourly", "open_bandit"} == set(datasets.names())


def test_mnist_begins_with_a_five_and_holds_out_from_a_seven(filled: Path) -> None:
    table = datasets.load("mnist")
    assert table.target[:5].tolist() == [5, 0, 4, 1, 9]
    assert table.target[60_000:60_003].tolist() == [7, 2, 1]
    train = np.bincount(table.target[:60_000]).tolist()
    assert train == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]  # LeCun's counts
    assert abs(float(table.features[:60_000].mean()) - 0.1307) < 1e-4  # everybody's MNIST mean


def test_class_counts_are_the_published_ones(filled: Path) -> None:
    covtype = np.bincount(datasets.load("covtype").target).tolist()
    assert covtype == [211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510]  # covtype.info
    occupancy = np.bincount(datasets.load("room_occupancy").target).tolist()
    assert occupancy == [8_228, 459, 748, 694]  # UCI 864
    assert np.bincount(datasets.load("elec2").target).tolist() == [26_075, 19_237]  # OpenML 151
    shuttle = np.bincount(datasets.load("shuttle").target).tolist()
    assert shuttle == [45_586, 50, 171, 8_903, 3_267, 10, 13]  # shuttle.doc, both parts


def test_covtype_has_one_area_and_one_soil_a_plot(filled: Path) -> None:
    table = datasets.load("covtype")
    assert np.all(table.features[:, 10:14].sum(axis=1) == 1)
    assert np.all(table.features[:, 14:].sum(axis=1) == 1)
    assert table.names[0] == "Elevation"
    assert table.names[14 + 28] == "Soil_Type29"
    assert table.features[0, 14 + 28] == 1  # the first plot of covtype.data is of soil type 29


def test_letter_begins_with_a_t(filled: Path) -> None:
    table = datasets.load("letter")
    assert "".join(chr(65 + label) for label in table.target[:6]) == "TIDNGS"
    np.testing.assert_allclose(table.features[0, :4] * 15, [2, 8, 3, 5], rtol=1e-6)


def test_air_quality_scales_what_the_sensors_measured(filled: Path) -> None:
    table = datasets.load("air_quality")
    raw = read(filled / "air_quality" / "AirQualityUCI.csv.gz")
    used = np.stack([raw[name] for name in (*table.names, "C6H6(GT)")], axis=1)
    complete = used[(used != -200).all(axis=1)]
    low, high = complete.min(axis=0), complete.max(axis=0)
    back = np.column_stack([table.features, table.target]) * (high - low) + low
    np.testing.assert_allclose(back, complete, rtol=1e-4, atol=1e-3)
    assert (low[-1], high[-1]) == (0.1, 63.7)  # micrograms of benzene, UCI 360


def test_appliances_uses_the_25_columns_of_the_paper(filled: Path) -> None:
    table = datasets.load("appliances_energy")
    assert table.names[:3] == ("lights", "T1", "RH_1")
    assert table.names[-6:] == (
        *("T_out", "Press_mm_hg", "RH_out"),
        *("Windspeed", "Visibility", "Tdewpoint"),
    )
    np.testing.assert_allclose(table.target[:3] * 1070 + 10, [60, 60, 50], rtol=1e-5)  # 10..1080 Wh


def test_sensorless_is_marked_as_partial(filled: Path) -> None:
    assert datasets.status("sensorless") == "partial"
    with pytest.warns(UserWarning, match="partial.*2,200 of the 58,509 rows"):
        table = datasets.load("sensorless")
    assert np.bincount(table.target).tolist() == [200] * 11
    check_scaled(table)


def test_pjm_predicts_the_next_hour_of_eight_zones(filled: Path) -> None:
    table = datasets.load("pjm_hourly")
    assert table.features.shape[1] == len(table.names) == 10
    assert table.classes is None
    assert table.features.dtype == table.target.dtype == np.float32
    assert np.isfinite(table.features).all()
    assert np.isfinite(table.target).all()
    assert table.keys is not None
    zones, counts = np.unique(table.keys, return_counts=True)
    assert zones.tolist() == ["AEP", "COMED", "DAYTON", "DEOK", "DOM", "DUQ", "EKPC", "FE"]
    assert counts.max() <= 45_336 - 168
    assert counts.min() > 45_336 - 168 - 100  # a few hours of every zone are missing
    for zone in zones:
        own = table.keys == zone
        assert abs(float(table.target[own].mean()) - 1) < 0.01
        assert float(np.corrcoef(table.features[own, 0], table.target[own])[0, 1]) > 0.9


def test_loading_leaves_the_cache_as_it_was(filled: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in filled.rglob("*")}
    datasets.load("satimage")
    assert {path: path.stat().st_mtime_ns for path in filled.rglob("*")} == before


def test_two_loads_agree(filled: Path) -> None:
    first, second = datasets.load("pendigits"), datasets.load("pendigits")
    assert fingerprint({"x": first.features}) == fingerprint({"x": second.features})
