"""The pinball loss and quantiles of the error equal those of scikit-learn and NumPy; batches have them too."""

import numpy as np
import pytest
from sklearn import metrics

import mainstem as ms
from mainstem.errors import BadParameter, MainstemError

T = 40
LEVELS = [0.1, 0.5, 0.9]


def stream():
    """Sites of unequal length."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(90, 2))
    return ms.streams.arrays(
        rows,
        rows @ [1.0, -2.0] + draw.normal(size=90),
        keys=draw.choice(["a", "b", "c"], 90, p=[0.5, 0.3, 0.2]),
    )


@pytest.fixture(scope="module")
def run():
    return ms.simulate(
        ms.fedsea(0.1, period=3),
        ms.problems.linear(2),
        stream(),
        steps=T,
        seeds=2,
        measure=["predictions"],
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("step", [1, 17, T])
def test_equal_those_of_scikit_learn_and_numpy(run, level, step):
    predicted, targets = (
        run.column(name)[1, :step] for name in ("prediction_per_client", "target_per_client")
    )
    here = ~np.isnan(targets)
    predicted, targets = predicted[here].astype(float), targets[here].astype(float)
    found = ms.measure.pinball(run, level)[1, step - 1]
    np.testing.assert_allclose(
        found, metrics.mean_pinball_loss(targets, predicted, alpha=level), rtol=1e-12
    )
    quantile = np.quantile(np.abs(targets - predicted), level, method="inverted_cdf")
    assert ms.measure.error_quantile(run, level)[1, step - 1] == quantile


def test_a_run_has_them_as_curves(run):
    assert run.plot("pinball").axes[0].get_ylabel() == "pinball loss(t) at level 0.5"
    assert {"pinball", "error_quantile"} <= set(run.to_pandas().columns)
    assert "error quantile" in str(ms.compare([run], "error quantile"))


def test_what_was_not_recorded_is_named(run):
    with pytest.raises(MainstemError, match="auc: it is of problems with two classes"):
        ms.measure.auc(run)
    with pytest.raises(BadParameter, match="level must be above 0 and below 1, got 1"):
        ms.measure.pinball(run, 1)
    given = {"steps": 2, "measure": ["predictions"]}
    with pytest.raises(BadParameter, match="problems with a number as target"):
        ms.simulate(ms.fedogd(0.1), ms.problems.softmax(64, 10), ms.streams.digits(2), **given)


@pytest.mark.parametrize("plain", [False, True])
def test_samples_of_batches_are_recorded_one_by_one(plain, tmp_path):
    draw = np.random.default_rng(1)
    rows, sites = draw.normal(size=(46, 2)), np.repeat(["a", "b"], [28, 18])
    data = ms.streams.arrays(rows, (rows[:, 0] > 0).astype(int), keys=sites)
    run = ms.simulate(
        ms.fedogd(0.5),
        ms.problems.batched(ms.problems.logistic(2)),
        ms.streams.in_batches(data, 4),
        steps=7,
        measure=["scores"],
        plain=plain,
        dtype="float64",
    )
    scores, labels = (run.column(f"{name}_per_client") for name in ("score", "label"))
    assert scores.shape == labels.shape == (7, 8)
    here = ~np.isnan(labels)
    assert here.sum(axis=1).tolist() == [8, 8, 8, 8, 6, 4, 4]  # b has 18 rows
    np.testing.assert_allclose(
        ms.measure.auc(run)[-1], metrics.roc_auc_score(labels[here], scores[here]), rtol=1e-12
    )
    np.testing.assert_array_equal(
        ms.measure.auc(ms.load(run.save(tmp_path / "run"))), ms.measure.auc(run)
    )
