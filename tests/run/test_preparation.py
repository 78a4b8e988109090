"""A loaded model prepares rows as the run would have prepared the next row of the client."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy

import mainstem as ms
from mainstem import parts
from mainstem.errors import BadData

STEPS, LENGTH, SITES = 20, 30, ("lima", "oslo", "rome")
DRAW = np.random.default_rng(0)
ROWS = DRAW.normal([100.0, -3.0], [5.0, 0.1], size=(LENGTH * 3, 2))
KEYS = np.array(SITES)[DRAW.permutation(np.tile(np.arange(3), LENGTH))]
TARGET = (ROWS - [100, -3]) @ [0.2, 5.0] + DRAW.normal(size=len(ROWS))
GAPS = DRAW.uniform(size=ROWS.shape) < 0.2
PARTS = {
    "scaled": {"scale": parts.standardised()},
    "filled": {"missing": parts.last_value(start=100.0)},
    "both": {"scale": parts.standardised(), "missing": parts.running_mean(indicator=True)},
}


def rows_of(given: dict[str, object]) -> np.ndarray:
    return np.where(GAPS, np.nan, ROWS) if "missing" in given else ROWS


def table(given: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame(rows_of(given), columns=["heat", "wind"]).assign(site=KEYS, load=TARGET)


def stream_of(kind: str, given: dict[str, object], folder: Path) -> ms.base.Stream:
    if kind == "arrays":
        return ms.streams.arrays(rows_of(given), TARGET, keys=KEYS, **given)
    columns = {"target": "load", "key": "site", "features": ["heat", "wind"], **given}
    if kind == "frame":
        return ms.streams.frame(table(given), **columns)
    table(given).to_csv(folder / "data.csv", index=False)
    return ms.streams.csv(folder / "data.csv", **columns)


def run_of(kind: str, name: str, folder: Path, **settings: object) -> ms.Run:
    given = PARTS[name]
    problem = ms.problems.linear(features=4 if name == "both" else 2)
    size = 0.1 if "scale" in given else 1e-5
    stream = stream_of(kind, given, folder)
    return ms.simulate(ms.fedogd(size), problem, stream, steps=STEPS, dtype="float64", **settings)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("kind", ["arrays", "frame", "csv"])
def test_a_row_is_prepared_as_the_next_one_of_its_client(
    kind: str, name: str, tmp_path: Path
) -> None:
    run = run_of(kind, name, tmp_path)
    model = ms.load_model(run.export(tmp_path / "model", features=["heat", "wind"]))
    assert model.clients == SITES
    prepared = stream_of("arrays", PARTS[name], tmp_path).features_prepared
    for site in SITES:
        row = np.flatnonzero(site == KEYS)[STEPS]  # the first that the run did not reach
        wanted = prepared[row] @ run.model[:-1] + run.model[-1]
        raw = rows_of(PARTS[name])[row]
        close = pytest.approx(wanted, rel=1e-5, abs=1e-4)  # a file has 32 bits
        assert model.predict_one(raw, client=site) == close
        named = {"heat": None if np.isnan(raw[0]) else raw[0], "wind": raw[1]}
        assert model.predict_one(named, client=site) == close
        assert model.predict_one(prepared[row], prepared=True) == close
        both = table(PARTS[name]).iloc[[row, row]]
        assert model.predict(both, client=site).tolist() == [close, close]


def test_whose_row_it_is_must_be_known(tmp_path: Path) -> None:
    run = run_of("arrays", "scaled", tmp_path)
    model = ms.load_model(run.export(tmp_path / "model"))
    for given in ({}, {"client": "bonn"}):
        with pytest.raises(BadData, match="client, whose row it is, must be one of 'lima', 'oslo'"):
            model.predict(ROWS, **given)
    with pytest.raises(BadData, match="client must be left out"):
        model.predict(ROWS, client="oslo", prepared=True)
    with pytest.raises(BadData, match="x must be finite"):
        model.predict([[np.nan, 1.0]], client="oslo")
    with pytest.raises(BadData, match=r"x must have the shape \(2,\)"):
        model.predict([[1.0]], client="oslo")
    alone = ms.load_model(run.export(tmp_path / "oslo", client=1))
    assert alone.clients == ("oslo",)
    np.testing.assert_array_equal(alone.predict(ROWS), model.predict(ROWS, client="oslo"))


def test_clients_without_names_have_numbers(tmp_path: Path) -> None:
    stream = ms.streams.arrays(
        ROWS, TARGET, 3, deal=ms.streams.in_time(), scale=parts.standardised()
    )
    run = ms.simulate(ms.fedogd(0.1), ms.problems.linear(2), stream, steps=STEPS)
    model = ms.load_model(run.export(tmp_path / "model"))
    assert model.clients == (0, 1, 2)
    assert np.isfinite(model.predict(ROWS, client=2)).all()


def test_without_what_was_seen_raw_rows_are_refused(tmp_path: Path) -> None:
    stream = ms.streams.in_batches(stream_of("arrays", PARTS["both"], tmp_path), size=2)
    problem = ms.problems.batched(ms.problems.linear(4))
    inside = ms.simulate(ms.fedogd(0.1), problem, stream, steps=5)
    gone = run_of("csv", "scaled", tmp_path)
    gone.save(tmp_path / "run")
    (tmp_path / "data.csv").unlink()
    for run in (inside, ms.load(tmp_path / "run")):
        model = ms.load_model(run.export(tmp_path / "model"))
        assert model.clients == ()
        with pytest.raises(BadData, match=r"prepared by .*standardised.*predict\(x, prepared=True"):
            model.predict(ROWS)
    assert np.isfinite(model.predict([[0.1, 0.2]], prepared=True)).all()


def test_a_model_of_raw_rows_needs_no_client(tmp_path: Path) -> None:
    stream = ms.streams.arrays(ROWS, TARGET, keys=KEYS)
    run = ms.simulate(ms.fedogd(1e-5), ms.problems.linear(2), stream, steps=STEPS)
    model = ms.load_model(run.export(tmp_path / "model"))
    np.testing.assert_array_equal(model.predict(ROWS), model.predict(ROWS, prepared=True))
    with pytest.raises(BadData, match="client must be left out"):
        model.predict(ROWS, client="oslo")


def test_another_program_finds_what_was_seen(tmp_path: Path) -> None:
    path = run_of("arrays", "scaled", tmp_path).export(tmp_path / "model")
    found = safetensors.numpy.load_file(path)
    first = ROWS[KEYS == "rome"][:STEPS]
    np.testing.assert_allclose(found["preprocessing.mean"][2], first.mean(axis=0))
    np.testing.assert_allclose(found["preprocessing.deviation"][2], first.std(axis=0))
    assert found["preprocessing.count"].tolist() == [STEPS] * 3
