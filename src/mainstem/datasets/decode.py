"""Decoders: from the cached arrays of each dataset to its table."""

from collections.abc import Callable, Sequence

import numpy as np

from mainstem.datasets.named_arrays import Array, Arrays
from mainstem.datasets.table import Table, labelled, unit

MISSING = -200  # UCI 360's own mark for "no measurement"

AIR_QUALITY = tuple(
    f"PT08.S{n}({gas})" for n, gas in enumerate(("CO", "NMHC", "NOx", "NO2", "O3"), start=1)
)
APPLIANCES = (
    "lights",
    *(f"{kind}{room}" for room in range(1, 10) for kind in ("T", "RH_")),
    *("T_out", "Press_mm_hg", "RH_out", "Windspeed", "Visibility", "Tdewpoint"),
)
OCCUPANCY = (
    *(f"S{n}_{kind}" for kind in ("Temp", "Light", "Sound") for n in range(1, 5)),
    *("S5_CO2", "S5_CO2_Slope", "S6_PIR", "S7_PIR"),
)


def images(arrays: Arrays) -> Table:
    """Grey pixels 0..255 scaled to [0, 1], with the source's test part at the end."""
    pixels = np.concatenate([arrays["X_train"], arrays["X_test"]])
    labels, classes = labelled(np.concatenate([arrays["y_train"], arrays["y_test"]]))
    scaled = np.divide(pixels, 255, dtype=np.float32)
    return Table(scaled, labels, classes, held_out=len(arrays["y_test"]))


def two_parts(arrays: Arrays) -> Table:
    """Training rows followed by test rows."""
    features = np.concatenate([arrays["X_train"], arrays["X_test"]])
    labels, classes = labelled(np.concatenate([arrays["y_train"], arrays["y_test"]]))
    return Table(unit(features), labels, classes, held_out=len(arrays["y_test"]))


def one_part(arrays: Arrays) -> Table:
    """Rows that the source does not divide."""
    labels, classes = labelled(arrays["y"])
    names = arrays["feature_names"].tolist() if "feature_names" in arrays else ()
    return Table(unit(arrays["X"]), labels, classes, names=tuple(names))


def covtype(arrays: Arrays) -> Table:
    """The published 54 features: ten numbers, four wilderness areas, forty soil types."""
    labels, classes = labelled(arrays["y"])
    blocks = [
        unit(arrays["X_num"]),
        _one_hot(arrays["wilderness"], 4),
        _one_hot(arrays["soil"], 40),
    ]
    areas = [f"Wilderness_Area{n}" for n in range(1, 5)]
    soils = [f"Soil_Type{n}" for n in range(1, 41)]
    names = (*arrays["num_names"].tolist(), *areas, *soils)
    return Table(np.concatenate(blocks, axis=1), labels, classes, names=names)


def classification(target: str, features: Sequence[str]) -> Callable[[Arrays], Table]:
    """Named columns of a CSV as features, and one column as the class."""

    def decode(arrays: Arrays) -> Table:
        labels, classes = labelled(arrays[target])
        return Table(unit(_stacked(arrays, features)), labels, classes, names=tuple(features))

    return decode


def regression(
    target: str, features: Sequence[str], *, missing: float | None = None
) -> Callable[[Arrays], Table]:
    """Named columns of a CSV as features, and one column as the target, all scaled to [0, 1].

    A row is dropped only if a column that is used contains `missing`: in Air Quality, an unused analyser is
    missing in nine rows of ten.
    """

    def decode(arrays: Arrays) -> Table:
        used = _stacked(arrays, [*features, target])
        scaled = unit(used if missing is None else used[np.all(used != missing, axis=1)])
        inputs = np.ascontiguousarray(scaled[:, :-1])
        return Table(inputs, scaled[:, -1].copy(), None, names=tuple(features))

    return decode


def _stacked(arrays: Arrays, names: Sequence[str]) -> Array:
    return np.stack([arrays[name] for name in names], axis=1)


def _one_hot(codes: Array, kinds: int) -> Array:
    return np.eye(kinds, dtype=np.float32)[codes]
