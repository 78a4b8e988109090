"""Clients of unequal length: silent when their rows have ended, from the first row again, or cut for all."""

import numpy as np
import pandas as pd
import pytest

import mainstem as ms
from mainstem import streams

LENGTHS = {"a": 7, "b": 3, "c": 5}
STEPS = {"silent": 7, "repeat": None, "cut": 3}


def frame():
    draw = np.random.default_rng(0)
    keys = draw.permutation(np.repeat([*LENGTHS], [*LENGTHS.values()]))
    return pd.DataFrame(
        {
            "site": keys,
            "x": draw.normal(size=15),
            "z": draw.normal(size=15),
            "y": draw.normal(size=15),
        }
    )


def stream_of(kind, ends, folder):
    rows = frame()
    if kind == "arrays":
        deal = streams.by_key(ends=ends)
        return streams.arrays(
            rows[["x", "z"]].to_numpy(), rows["y"].to_numpy(), keys=rows["site"], deal=deal
        )
    path = folder / f"rows.{kind}"
    getattr(rows, f"to_{kind}")(path, index=False)
    return getattr(streams, kind)(path, "y", "site", ["x", "z"], ends=ends)


def loop(ends, steps, eta):
    """FedOGD by hand: (mean loss of each step, model)."""
    rows = frame()
    sites = [rows[rows.site == name] for name in LENGTHS]
    w, losses = np.zeros(2), []
    for t in range(steps):
        loss, slope = 0.0, np.zeros(2)
        for site in sites:
            if t >= len(site) and ends == "silent":
                continue
            row = site.iloc[t % len(site)]
            x = row[["x", "z"]].to_numpy(float)
            error = x @ w - row["y"]
            loss, slope = loss + error**2 / 2, slope + error * x
        losses.append(loss / 3)
        w = w - eta * slope / 3
    return np.array(losses), w


@pytest.mark.parametrize("ends", STEPS)
@pytest.mark.parametrize("kind", ["arrays", "csv", "parquet"])
def test_as_a_plain_loop_has_it(kind, ends, tmp_path):
    stream = stream_of(kind, ends, tmp_path)
    assert stream.clients == 3
    assert stream.steps == STEPS[ends]
    steps = stream.steps or 9
    problem = ms.problems.linear(2, intercept=False)
    run = ms.simulate(ms.fedogd(0.1), problem, stream, steps=steps, dtype="float64")
    losses, model = loop(ends, steps, 0.1)
    tolerance = 1e-10 if kind == "arrays" else 1e-6  # files are read as float32
    np.testing.assert_allclose(run.loss, losses, atol=tolerance)
    np.testing.assert_allclose(run.model, model, atol=tolerance)
    plain = ms.simulate(ms.fedogd(0.1), problem, stream, steps=steps, dtype="float64", plain=True)
    np.testing.assert_allclose(plain.loss, losses, atol=tolerance)


def test_the_regret_counts_every_row_once(tmp_path):
    rows, problem = frame(), ms.problems.linear(2, intercept=False)
    x, y = rows[["x", "z"]].to_numpy(), rows["y"].to_numpy()
    best = np.sum((y - x @ np.linalg.lstsq(x, y)[0]) ** 2) / 2 / 3
    for kind in ("arrays", "csv"):
        stream = stream_of(kind, "silent", tmp_path)
        run = ms.simulate(ms.fedogd(0.1), problem, stream, steps=7, dtype="float64")
        assert float(run.regret()) == pytest.approx(run.loss.sum() - best, abs=1e-6)


def test_keys_are_dealt_by_key_by_default():
    rows = frame()
    x, y = rows[["x", "z"]].to_numpy(), rows["y"].to_numpy()
    asked = streams.arrays(x, y, keys=rows["site"], deal=streams.by_key())
    usual = streams.arrays(x, y, keys=rows["site"])
    assert usual.clients == 3
    np.testing.assert_array_equal(usual.places(0, 1, 7), asked.places(0, 1, 7))


@pytest.mark.parametrize(
    ("deal", "steps", "last"),
    [
        (streams.in_time(), 4, [3, 7, -1]),
        (streams.in_time(ends="cut"), 3, [2, 6, 10]),
        (streams.in_time(ends="repeat"), None, [3, 7, 8]),
        (streams.evenly(ends="cut"), 3, None),
        (streams.evenly(ends="silent"), 4, None),
    ],
)
def test_each_deal_has_its_ends(deal, steps, last):
    stream = streams.arrays(np.ones((11, 2)), np.zeros(11), clients=3, deal=deal)
    assert stream.steps == steps
    found = stream.places(0, 1, steps or 4)
    if last is not None:
        assert found[-1].tolist() == last
    if "evenly" in repr(deal):
        assert sorted(found.ravel())[-11 if steps == 4 else -9 :] == sorted(
            set(found.ravel()) - {-1}
        )
        assert np.sum(found < 0) == (1 if steps == 4 else 0)


def test_other_words_are_refused():
    with pytest.raises(ms.MainstemError, match="by_key: ends must be one of"):
        streams.by_key(ends="wrap")
