"""The fingerprint sees content, and nothing but content."""

import numpy as np
import pytest

from mainstem.datasets.named_arrays import fingerprint

BASE = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "name": np.array(["a", "bc"])}


@pytest.mark.parametrize(
    "same",
    [
        {"name": BASE["name"], "x": BASE["x"]},
        {**BASE, "x": np.asfortranarray(BASE["x"])},
        {**BASE, "x": BASE["x"].astype(">f4")},
        {**BASE, "x": np.where(BASE["x"] == 0, np.float32(-0.0), BASE["x"])},
        {**BASE, "name": BASE["name"].astype("U9")},
    ],
)
def test_storage_does_not_matter(same: dict[str, np.ndarray]) -> None:
    assert fingerprint(same) == fingerprint(BASE)


@pytest.mark.parametrize(
    "other",
    [
        {"x": BASE["x"]},
        {"y": BASE["x"], "name": BASE["name"]},
        {**BASE, "x": BASE["x"].astype(np.float64)},
        {**BASE, "x": BASE["x"].reshape(3, 2)},
        {**BASE, "x": BASE["x"][::-1]},
        {**BASE, "x": BASE["x"] + np.float32(1e-6)},
        {**BASE, "name": np.array(["ab", "c"])},
    ],
)
def test_content_matters(other: dict[str, np.ndarray]) -> None:
    assert fingerprint(other) != fingerprint(BASE)


def test_all_nans_are_one_and_times_have_one_unit() -> None:
    nans = np.array([0x7FC00000, 0xFFC00001], dtype=np.uint32).view(np.float32)
    assert fingerprint({"x": nans}) == fingerprint({"x": np.full(2, np.nan, np.float32)})
    hours = np.array(["2018-08-03T00"], dtype="M8[h]")
    assert fingerprint({"t": hours}) == fingerprint({"t": hours.astype("M8[ns]")})
