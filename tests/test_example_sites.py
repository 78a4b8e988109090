"""A realistic day: 50 sites of unequal length, words as labels, gaps, 1.65 % faults, own losses and models."""

import numpy as np
import pandas as pd
import pytest

from examples import sites


def untidy(count, longest):
    """Rows in any order; the sites have other lengths."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(longest // 10, longest, count)
    rows = draw.normal(size=(lengths.sum(), 4))
    score = rows @ [1.5, -1.0, 0.5, 0.0] + 0.7 * draw.normal(size=len(rows))
    faulty = score >= np.quantile(score, 1 - 0.0165)
    rows[draw.uniform(size=rows.shape) < 0.1] = np.nan
    table = pd.DataFrame(rows, columns=["heat", "wind", "load", "noise"])
    table["site"] = np.repeat([f"site {k}" for k in range(count)], lengths)
    table["state"] = np.where(faulty, "faulty", "fine")
    return table.sample(frac=1, random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize(("longest", "better"), [(40, 0.5), (200, 0.9)])
def test_the_day(longest, better, tmp_path):
    table = untidy(50, longest)
    assert np.mean(table["state"] == "faulty") == pytest.approx(0.0165, abs=0.0015)
    table.to_csv(tmp_path / "sites.csv", index=False)
    compared = sites.main(tmp_path / "sites.csv", tmp_path)
    rows = {row["algorithm"]: row for row in compared}
    assert next(iter(rows)) == "linear, sync every 1"
    assert len(rows) == 4
    assert rows["linear, sync every 1"]["auc"] > better
    assert {run.summary.clients for run in compared.runs.values()} == {50}
    assert compared.runs["network"].labels == ("fine", "faulty")
    assert {each.name for each in tmp_path.iterdir()} == {
        *("sites.csv", "auc.pdf", "pareto.pdf", "regret.pdf", "table.tex")
    }
    assert r"linear, sync every 25 &" in (tmp_path / "table.tex").read_text()
    curve = compared.runs["linear, sync every 1"].regret("curve")
    assert curve.values.shape == (10, 20)
    assert "certified" in curve.statement
