"""The catalogue's own entries, fed with their sources' files as rebuilt from the filled cache.

There is no network in the tests. What the public servers send is written here from the cached
arrays in the servers' formats, and must come back through download, parser, converter and
fingerprint. For Shuttle the rebuilt text is known to be UCI's, byte for byte.
"""

import bz2
import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mainstem.datasets import catalogue, proof
from mainstem.datasets.dataset import Dataset
from mainstem.datasets.fetch import fetch
from mainstem.datasets.formats import read, write
from mainstem.datasets.named_arrays import Arrays, fingerprint
from mainstem.errors import DataUnavailable


def cached(shared: Path, name: str) -> Arrays:
    return read(shared / name / catalogue.DATASETS[name].file)


def comes_back(name: str, arrays: Arrays, folder: Path) -> None:
    """The entry fetches the expected arrays, and the cache stores them."""
    entry = catalogue.find(name)
    assert fingerprint(fetch(entry)) == fingerprint(arrays)
    stored = read(folder / name / entry.file)
    assert list(stored) == list(arrays)
    assert {name: column.dtype for name, column in stored.items()} == {
        name: column.dtype for name, column in arrays.items()
    }
    assert fingerprint(stored) == fingerprint(arrays)


def zipped(files: dict[str, bytes]) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return body.getvalue()


def rows(*columns: Iterable[Any], joined: str = " ") -> str:
    lines = np.column_stack([np.asarray(column) for column in columns]).astype(str)
    return "".join(joined.join(line) + "\n" for line in lines)


def part(arrays: Arrays, name: str, joined: str = " ") -> bytes:
    return rows(arrays[f"X_{name}"], arrays[f"y_{name}"], joined=joined).encode()


def as_openml(web: Any, data_id: int, names: list[str], labels: str, body: str) -> None:
    attributes = "".join(f"@ATTRIBUTE {name} REAL\n" for name in names)
    table = f"@RELATION x\n\n{attributes}@ATTRIBUTE class {{{labels}}}\n\n@DATA\n{body}"
    url = "https://www.openml.org/data/v1/download/1/x.arff"
    described = json.dumps({"data_set_description": {"url": url}})
    web.serve(f"/api/v1/json/data/{data_id}", described.encode())
    web.serve("/data/v1/download/1/x.arff", table.encode())


def test_letter(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    arrays = cached(shared, "letter")
    capitals = [chr(65 + label) for label in arrays["y"]]
    data = rows(capitals, arrays["X"], joined=",").encode()
    path = "/static/public/59/letter+recognition.zip"
    mirrored.serve(path, zipped({"Index": b"", "letter-recognition.data": data}))
    comes_back("letter", arrays, cache_folder)


def test_pendigits(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    arrays = cached(shared, "pendigits")
    tables = {
        "pendigits.tra": part(arrays, "train", ", "),
        "pendigits.tes": part(arrays, "test", ","),
    }
    path = "/static/public/81/pen+based+recognition+of+handwritten+digits.zip"
    mirrored.serve(path, zipped(tables))
    comes_back("pendigits", arrays, cache_folder)


def test_satimage(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    arrays = cached(shared, "satimage")
    tables = {"sat.doc": b"", "sat.trn": part(arrays, "train"), "sat.tst": part(arrays, "test")}
    mirrored.serve("/static/public/146/statlog+landsat+satellite.zip", zipped(tables))
    comes_back("satimage", arrays, cache_folder)


def test_shuttle(
    shared: Path, mirrored: Any, cache_folder: Path, compress: Callable[..., bytes]
) -> None:
    arrays = cached(shared, "shuttle")
    train, test = part(arrays, "train"), part(arrays, "test")
    # the SHA-256 of the two files of UCI's statlog+shuttle.zip, as others have published them
    assert hashlib.sha256(train).hexdigest().startswith("87b24ee9fb5137e1d417659cf905d84d")
    assert hashlib.sha256(test).hexdigest().startswith("f776934a628d9b94c482cb058a76ddaa")
    tables = {"shuttle.trn.Z": compress(train), "shuttle.tst": test}
    mirrored.serve("/static/public/148/statlog+shuttle.zip", zipped(tables))
    comes_back("shuttle", arrays, cache_folder)


@pytest.mark.slow
def test_covtype(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    arrays = cached(shared, "covtype")
    areas = np.array([",".join(row) for row in np.eye(4, dtype=int).astype(str)])
    soils = np.array([",".join(row) for row in np.eye(40, dtype=int).astype(str)])
    groups = zip(
        arrays["X_num"].tolist(),
        areas[arrays["wilderness"]],
        soils[arrays["soil"]],
        arrays["y"].tolist(),
        strict=True,
    )
    body = "".join(f"{','.join(map(str, x))},{a},{s},{y}\n" for x, a, s, y in groups)
    packed = gzip.compress(body.encode(), compresslevel=0)
    mirrored.serve("/static/public/31/covertype.zip", zipped({"covtype.data.gz": packed}))
    comes_back("covtype", arrays, cache_folder)


@pytest.mark.slow
def test_mnist(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    arrays = cached(shared, "mnist")
    spelt = [str(n) for n in range(256)]
    pixels = np.concatenate([arrays["X_train"], arrays["X_test"]]).reshape(70_000, 784)
    labels = np.concatenate([arrays["y_train"], arrays["y_test"]])
    body = "".join(
        f"{','.join([spelt[n] for n in row.tobytes()])},{label}\n"
        for row, label in zip(pixels, labels.tolist(), strict=True)
    )
    as_openml(mirrored, 554, [f"pixel{n}" for n in range(1, 785)], "0,1,2,3,4,5,6,7,8,9", body)
    comes_back("mnist", arrays, cache_folder)


def usps_text(arrays: Arrays, name: str) -> list[list[str]]:
    """ESL's three decimals in [-1, 1], of which the cached pixels are (x + 1) / 2 in float32."""
    thousandths = np.rint(2000 * arrays[f"X_{name}"].astype(np.float64) - 1000).astype(int)
    spelt = {n: f"{n / 1000:.3f}" for n in range(-1000, 1001)}
    return [[spelt[n] for n in row] for row in thousandths.tolist()]


def test_usps_from_openml(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    arrays = cached(shared, "usps")
    labels = np.concatenate([arrays["y_train"], arrays["y_test"]]).tolist()
    pixels = usps_text(arrays, "train") + usps_text(arrays, "test")
    lines = zip(pixels, labels, strict=True)
    body = "".join(f"{','.join(row)},{label + 1}\n" for row, label in lines)
    names = [f"double{n}" for n in range(1, 257)]
    as_openml(mirrored, 41082, names, "1,2,3,4,5,6,7,8,9,10", body)
    comes_back("usps", arrays, cache_folder)


@pytest.mark.slow
def test_usps_from_libsvm_when_openml_is_away(
    shared: Path, mirrored: Any, cache_folder: Path
) -> None:
    arrays = cached(shared, "usps")
    for name, file in (("train", "usps.bz2"), ("test", "usps.t.bz2")):
        lines = zip(usps_text(arrays, name), arrays[f"y_{name}"].tolist(), strict=True)
        body = "".join(
            f"{label + 1} {' '.join(f'{n}:{x}' for n, x in enumerate(row, start=1))}\n"
            for row, label in lines
        )
        path = f"/~cjlin/libsvmtools/datasets/multiclass/{file}"
        mirrored.serve(path, bz2.compress(body.encode(), 1))
    comes_back("usps", arrays, cache_folder)
    assert "From LIBSVM usps" in (cache_folder / "usps" / "PROVENANCE.txt").read_text()


def test_elec2(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    arrays = cached(shared, "elec2")
    numbers = np.array([[f"{value:.6f}" for value in row] for row in arrays["X"]])
    dates = np.full(len(numbers), "0.4428")
    labels = np.where(arrays["y"] == 1, "UP", "DOWN")
    names = ["date", "day", *arrays["feature_names"].tolist()]
    as_openml(mirrored, 151, names, "UP,DOWN", rows(dates, dates, numbers, labels, joined=","))
    comes_back("elec2", arrays, cache_folder)


def stored_csv(shared: Path, name: str) -> list[list[str]]:
    packed = (shared / name / catalogue.DATASETS[name].file).read_bytes()
    return [line.split(",") for line in gzip.decompress(packed).decode().splitlines()]


def test_air_quality(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    header, *cells = stored_csv(shared, "air_quality")
    lines = [";".join(header) + ";;"]
    for date, time, *numbers in cells:
        year, month, day = date.split("-")
        italian = (number.replace(".", ",") for number in numbers)
        lines.append(f"{day}/{month}/{year};{time.replace(':', '.')};{';'.join(italian)};;")
    lines += [";" * 16] * 114
    data = "\r\n".join(lines).encode()
    path = "/static/public/360/air+quality.zip"
    mirrored.serve(path, zipped({"AirQualityUCI.csv": data, "AirQualityUCI.xlsx": b""}))
    comes_back("air_quality", cached(shared, "air_quality"), cache_folder)


@pytest.mark.slow
def test_appliances_energy(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    cells = stored_csv(shared, "appliances_energy")
    data = "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in cells).encode()
    path = "/static/public/374/appliances+energy+prediction.zip"
    mirrored.serve(path, zipped({"energydata_complete.csv": data}))
    comes_back("appliances_energy", cached(shared, "appliances_energy"), cache_folder)


def test_room_occupancy(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    data = "".join(",".join(row) + "\r\n" for row in stored_csv(shared, "room_occupancy")).encode()
    path = "/static/public/864/room+occupancy+estimation.zip"
    mirrored.serve(path, zipped({"Occupancy_Estimation.csv": data}))
    comes_back("room_occupancy", cached(shared, "room_occupancy"), cache_folder)


@pytest.mark.parametrize("name", ["air_quality", "appliances_energy", "room_occupancy"])
def test_a_csv_is_written_as_it_was_cached(shared: Path, tmp_path: Path, name: str) -> None:
    file = catalogue.DATASETS[name].file
    write(tmp_path / file, cached(shared, name))
    made = gzip.decompress((tmp_path / file).read_bytes())
    assert made == gzip.decompress((shared / name / file).read_bytes())


def full_sensorless(shared: Path) -> Arrays:
    """The rows that the cache has, and rows of zeros instead of the others."""
    entry = catalogue.DATASETS["sensorless"].stand_in
    assert entry is not None
    arrays = read(shared / entry.name / entry.file)
    return {
        "X": np.concatenate([arrays["X"], np.zeros((58_509 - 2_200, 48), np.float32)]),
        "y": np.concatenate([arrays["y"], np.repeat(np.arange(1, 12), 5_119)]).astype(np.uint8),
    }


def test_sensorless_from_uci(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    arrays = full_sensorless(shared)
    lines = zip(arrays["X"].tolist(), arrays["y"].tolist(), strict=True)
    text = "".join(f"{' '.join([f'{x:.5g}' for x in row])} {label}\n" for row, label in lines)
    path = "/static/public/325/dataset+for+sensorless+drive+diagnosis.zip"
    mirrored.serve(path, zipped({"Sensorless_drive_diagnosis.txt": text.encode()}))
    comes_back("sensorless", arrays, cache_folder)


def test_sensorless_from_libsvm(shared: Path, mirrored: Any, cache_folder: Path) -> None:
    arrays = full_sensorless(shared)
    lines = zip(arrays["X"].tolist(), arrays["y"].tolist(), strict=True)
    text = "".join(
        f"{label} {' '.join([f'{n}:{x:.5g}' for n, x in enumerate(row, start=1) if x])}\n"
        for row, label in lines
    )
    mirrored.serve("/~cjlin/libsvmtools/datasets/multiclass/Sensorless", text.encode())
    comes_back("sensorless", arrays, cache_folder)


def sensorless(arrays: Arrays, change: str) -> Arrays:
    x, y = arrays["X"].copy(), arrays["y"].copy()
    if change == "size":
        return {"X": x[:-1], "y": y[:-1]}
    if change == "type":
        return {"X": x.astype(np.float64), "y": y}
    if change == "labels":
        return {"X": x, "y": np.where(y == 3, 4, y).astype(np.uint8)}
    if change == "scale":
        return {"X": x / 2, "y": y}
    return {"X": x[::-1], "y": y[::-1]}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("size", "not 58509 rows"),
        ("type", "not float32"),
        ("labels", "not 5319 rows"),
        ("scale", "11 of 11 known rows are absent"),
        ("order", ""),
    ],
)
def test_the_full_sensorless_set_is_known_by_its_facts(
    shared: Path, change: str, fault: str
) -> None:
    found = proof.sensorless(sensorless(full_sensorless(shared), change))
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


def test_reordered_rows_are_not_the_dataset(
    shared: Path, mirrored: Any, cache_folder: Path
) -> None:
    arrays = cached(shared, "satimage")
    upside_down = {name: column[::-1] for name, column in arrays.items()}
    tables = {"sat.trn": part(upside_down, "train"), "sat.tst": part(upside_down, "test")}
    mirrored.serve("/static/public/146/statlog+landsat+satellite.zip", zipped(tables))
    entry: Dataset = catalogue.find("satimage")
    with pytest.raises(DataUnavailable, match="other data than expected"):
        fetch(entry)
    assert list(cache_folder.iterdir()) == []
