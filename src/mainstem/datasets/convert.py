"""Converters: from each source's own format to the arrays that are cached.

Row order: every set has its source's order, training rows before test rows. UCI and LIBSVM store the two parts
in separate files. OpenML has one table: its MNIST is assumed to be the 60,000 training images followed by the
10,000 test images, its USPS likewise 7,291 and 2,007. OpenML does not document that it preserves the order of
letter, pendigits, satimage and shuttle, so those come from UCI. The fingerprint, not this module, decides
whether an assumption holds.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from mainstem.datasets import formats
from mainstem.datasets.arff import Arff
from mainstem.datasets.libsvm import Sparse
from mainstem.datasets.named_arrays import Array, Arrays
from mainstem.datasets.source import text
from mainstem.datasets.uci import Members, matrix
from mainstem.errors import BadData

_LETTER_NAMES = [
    "x.box",
    "y.box",
    "width",
    "high",
    "onpix",
    "x.bar",
    "y.bar",
    "x2bar",
    "y2bar",
    "xybar",
    "x2ybr",
    "xy2br",
    "x.ege",
    "xegvy",
    "y.ege",
    "yegvx",
]
_COVTYPE_NAMES = [
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
]
_ELEC2_NAMES = ["period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]


def mnist(table: Arff) -> Arrays:
    """OpenML's 70,000 rows of 784 pixels."""
    pixels = table.numbers.astype(np.uint8).reshape(-1, 28, 28)
    return _parts(pixels, _only_nominal(table).astype(np.uint8), 60_000)


def usps_openml(table: Arff) -> Arrays:
    """OpenML's 9,298 rows in [-1, 1], labelled digit + 1."""
    labels = _only_nominal(table).astype(np.int64) - 1
    return _parts(_unit_pixels(table.numbers), labels.astype(np.uint8), 7_291)


def usps_libsvm(train: Sparse, test: Sparse) -> Arrays:
    """LIBSVM's two files, scaled and labelled like OpenML's."""
    numbers = np.concatenate([train.numbers, test.numbers])
    labels = np.concatenate([train.labels, test.labels]) - 1
    return _parts(_unit_pixels(numbers), labels.astype(np.uint8), len(train.labels))


def elec2(table: Arff) -> Arrays:
    """OpenML's electricity without its date and day columns."""
    if not set(_ELEC2_NAMES) <= set(table.names):
        raise BadData(f"elec2 needs the columns {', '.join(_ELEC2_NAMES)}")
    numbers = table.numbers[:, [table.names.index(name) for name in _ELEC2_NAMES]]
    up = table.nominal["class"] == "UP"
    names = np.array(_ELEC2_NAMES)
    return {"X": numbers.astype(np.float32), "y": up.astype(np.uint8), "feature_names": names}


def letter(member: Members) -> Arrays:
    """UCI's rows: a capital, then sixteen small integers."""
    rows = [line.split(",") for line in text(member("letter-recognition.data")).split()]
    if any(len(row) != 17 or not "A" <= row[0] <= "Z" for row in rows):
        raise BadData("letter-recognition.data has rows other than a capital and 16 numbers")
    return {
        "X": np.array([row[1:] for row in rows]).astype(np.uint8),
        "y": np.array([ord(row[0]) - ord("A") for row in rows], dtype=np.uint8),
        "feature_names": np.array(_LETTER_NAMES),
    }


def two_tables(
    train: str, test: str, dtype: DTypeLike, *, delimiter: str | None = None
) -> Callable[[Members], Arrays]:
    """UCI's usual form: a training and a test table, the label in the last column."""

    def convert(member: Members) -> Arrays:
        made: dict[str, Array] = {}
        for part, name in (("train", train), ("test", test)):
            rows = matrix(member(name), np.int64, delimiter=delimiter)
            made[f"X_{part}"] = rows[:, :-1].astype(dtype)
            made[f"y_{part}"] = rows[:, -1].astype(np.uint8)
        return made

    return convert


def covtype(member: Members) -> Arrays:
    """UCI's 55 columns; the two groups of indicators are converted back to category numbers."""
    rows = matrix(member("covtype.data"), np.int16, delimiter=",")
    return {
        "X_num": rows[:, :10],
        "wilderness": rows[:, 10:14].argmax(axis=1).astype(np.uint8),
        "soil": rows[:, 14:54].argmax(axis=1).astype(np.uint8),
        "y": rows[:, 54].astype(np.uint8),
        "num_names": np.array(_COVTYPE_NAMES),
    }


def sensorless_libsvm(rows: Sparse) -> Arrays:
    """LIBSVM's unscaled file."""
    return {"X": rows.numbers.astype(np.float32), "y": rows.labels.astype(np.uint8)}


def sensorless_uci(member: Members) -> Arrays:
    """UCI's one text table, the label in the last column."""
    rows = matrix(member("Sensorless_drive_diagnosis.txt"), np.float64)
    return {"X": rows[:, :-1].astype(np.float32), "y": rows[:, -1].astype(np.uint8)}


def csv_table(name: str) -> Callable[[Members], Arrays]:
    """Converts a CSV member column by column, unchanged."""

    def convert(member: Members) -> Arrays:
        return formats.columns(*formats.csv_rows(text(member(name)).splitlines()))

    return convert


def air_quality(member: Members) -> Arrays:
    """UCI's CSV in Italian number format, with two empty columns and empty rows at the end.

    The archive's .xlsx has more digits; the CSV is the version in common use.
    """
    header, rows = formats.csv_rows(text(member("AirQualityUCI.csv")).splitlines(), delimiter=";")
    return formats.columns(header[:15], [_translated(row[:15]) for row in rows if row[0]])


def _translated(row: list[str]) -> list[str]:
    date, time, *numbers = row
    day = "-".join(reversed(date.split("/")))
    return [day, time.replace(".", ":"), *(cell.replace(",", ".") for cell in numbers)]


def _unit_pixels(numbers: Array) -> Array:
    """From [-1, 1] to [0, 1], in float32 as the cached copy was made."""
    pixels: Array = (numbers.astype(np.float32) + 1) / 2
    return pixels


def _only_nominal(table: Arff) -> Array:
    if len(table.nominal) != 1:
        raise BadData(
            f"one class attribute is expected, found {', '.join(table.nominal) or 'none'}"
        )
    (labels,) = table.nominal.values()
    return labels


def _parts(features: Array, labels: Array, train: int) -> Arrays:
    return {
        "X_train": features[:train],
        "y_train": labels[:train],
        "X_test": features[train:],
        "y_test": labels[train:],
    }
