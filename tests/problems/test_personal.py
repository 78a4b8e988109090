"""A prediction in two parts against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mainstem.base import Flat, Pair, Sample
from mainstem.errors import BadData, BadParameter
from mainstem.problems import personal
from tests.problems.slopes import AT, check_gradient

KINDS = {
    "squared": {},
    "squared, a constant each": {"intercept": True},
    "squared labels": {"classes": 2},
    "logistic": {"loss": "logistic", "classes": 2, "intercept": True},
}


def made(kind):
    return personal(3, 2, **KINDS[kind])


def draw(problem, label=None):
    """A sample and a model (shared, own)."""
    rng = np.random.default_rng(0)
    shown = rng.normal(size=3), rng.normal(size=2)
    hidden = rng.normal() if label is None else label
    return Sample(shown, hidden), Pair(*(rng.normal(size=x.shape) for x in problem.shapes))


def by_hand(kind, pair, sample):
    """(the score, the loss) in NumPy."""
    settings = KINDS[kind]
    score = 0.0
    for weights, x in zip(pair, sample.shown, strict=True):
        extended = np.append(x, 1) if settings.get("intercept") else x
        score += weights @ extended
    label = 2.0 * sample.hidden - 1 if "classes" in settings else sample.hidden
    if settings.get("loss") == "logistic":
        return score, np.log1p(np.exp(-label * score))
    return score, (label - score) ** 2


@pytest.mark.parametrize("label", [np.int32(0), np.int32(1), np.uint8(0), np.uint8(1)])
@pytest.mark.parametrize("kind", KINDS)
def test_loss_metric_and_form(kind, label):
    """Whatever whole numbers the labels are: in eight bits 2 * 0 - 1 would be 255."""
    problem = made(kind)
    sample, pair = draw(problem, label if "classes" in KINDS[kind] else None)
    score, loss = by_hand(kind, pair, sample)
    with jax.enable_x64(True):
        sample = jax.tree.map(jnp.asarray, sample)
        decision = problem.decide(pair, sample.shown, AT)
        metrics = problem.metrics(decision, sample)
        np.testing.assert_allclose(decision, score, rtol=1e-12)
        np.testing.assert_allclose(problem.loss(pair, sample), loss, rtol=1e-12)
        if problem.form is not None:
            value = problem.form(sample).value(np.concatenate(pair))
            np.testing.assert_allclose(value, loss, rtol=1e-11)
    if "classes" in KINDS[kind]:
        assert float(metrics["correct"]) == ((score > 0) == (label == 1))
    else:
        np.testing.assert_allclose(metrics["squared_error"], loss, rtol=1e-12)
    assert (problem.form is None) == (kind == "logistic")


@pytest.mark.parametrize("kind", KINDS)
def test_gradient(kind):
    problem = made(kind)
    sample, pair = draw(problem, np.int32(1) if "classes" in KINDS[kind] else None)
    check_gradient(problem, sample)
    with jax.enable_x64(True):
        vectors = Flat(problem)
        one, two = vectors.gradient(np.concatenate(pair), sample), vectors.gradient(pair, sample)
    assert isinstance(two, Pair)  # the same for a vector as for its parts
    np.testing.assert_array_equal(one, np.concatenate(two))


@pytest.mark.parametrize("kind", KINDS)
def test_either_part_can_learn_from_the_others_prediction_alone(kind):
    problem = made(kind)
    sample, pair = draw(problem, np.int32(0) if "classes" in KINDS[kind] else None)
    with jax.enable_x64(True):
        known = problem.residual
        x, local, label = known.read(sample)
        both = known.shared(pair.shared, x) + known.own(pair.own, local)
        summary = np.asarray(known.summary(pair.own, sample))
        loss = known.penalty(both, label)
        np.testing.assert_allclose(loss, by_hand(kind, pair, sample)[1], rtol=1e-12)
        np.testing.assert_allclose(summary[3], known.own(pair.own, local), rtol=1e-12)
    np.testing.assert_array_equal(summary[:3], sample.shown[0])
    assert summary[4] == sample.hidden
    assert known.widths == (3, 2)


def test_a_feature_that_is_zero_does_not_matter():
    """That is how a client with fewer local features is padded."""
    problem = personal(3, 2)
    sample, pair = draw(problem)
    padded = sample._replace(shown=(sample.shown[0], np.array([sample.shown[1][0], 0.0])))
    changed = pair._replace(own=pair.own + np.array([0.0, 7.0]))
    with jax.enable_x64(True):
        assert problem.loss(pair, padded) == problem.loss(changed, padded)
        assert np.asarray(Flat(problem).gradient(pair, padded).own)[1] == 0


def test_size_and_start():
    assert personal(8, 4).parameters == 12
    assert personal(8, 4, intercept=True).parameters == 14
    assert personal(8, 4).personal
    first = personal(2, 1, start=([1, 2], np.array([3.0]))).init(None)
    np.testing.assert_array_equal(first.shared, [1, 2])
    np.testing.assert_array_equal(first.own, [3])
    np.testing.assert_array_equal(np.concatenate(personal(2, 1).init(None)), np.zeros(3))


REFUSED = {
    "no shared": ({"shared": 0}, "shared must be an integer of at least 1, got 0"),
    "half a shared": ({"shared": 1.5}, "shared must be an integer"),
    "no own": ({"own": 0}, "own must be an integer of at least 1, got 0"),
    "loss": ({"loss": "hinge"}, "loss must be one of logistic, squared, got 'hinge'"),
    "classes": ({"classes": 3}, "classes must be left out or 2, got 3"),
    "logistic": ({"loss": "logistic"}, "classes must be 2 for the logistic loss, got None"),
    "one start": ({"start": [1, 2, 3]}, "start must be a pair of vectors, the shared one of 3"),
    "start of words": ({"start": ("abc", "de")}, "start must be a pair"),
    "start of a number": ({"start": 3.0}, "start must be a pair"),
    "long start": ({"start": ([0] * 3, [0] * 3)}, "start must be a pair.*the own one of 2 numbers"),
    "three starts": ({"start": ([0] * 3, [0] * 2, [0])}, "start must be a pair"),
    "start of nan": ({"start": ([np.nan] * 3, [0] * 2)}, "start must be a pair"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    given, message = REFUSED[case]
    with pytest.raises(BadParameter, match=f"personal: {message}"):
        personal(**({"shared": 3, "own": 2} | given))


def test_what_does_not_fit_is_refused():
    x = np.zeros((4, 3)), np.zeros((4, 2))
    personal(3, 2).check(x, np.zeros(4))
    with pytest.raises(BadData, match=r"of shape \(\(3,\), \(1,\)\), the stream has \(\(3,\), \(2"):
        personal(3, 1).check(x, np.zeros(4))
    with pytest.raises(BadData, match=r"of shape \(\(3,\), \(2,\)\), the stream has \(3,\)"):
        personal(3, 2).check(x[0], np.zeros(4))
    with pytest.raises(BadData, match="personal: wants labels 0 to 1, row 3 has 2"):
        personal(3, 2, classes=2).check(x, np.array([0, 1, 0, 2]))
    with pytest.raises(BadData, match="personal: wants one number"):
        personal(3, 2).check(x, np.zeros((4, 2)))
