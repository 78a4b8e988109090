"""Estimators of scikit-learn: they are the simulation, in pieces, and do what scikit-learn expects."""

import pickle

import jax
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator

import mainstem as ms
from mainstem import parts
from mainstem.engines.ongoing import Ongoing
from mainstem.errors import BadData

CLIENTS, STEPS = 4, 30
PROBLEM = ms.problems.softmax(features=3, classes=2)
ALGORITHMS = {
    "fedogd": ms.fedogd(0.2),
    "ofediq": ms.ofediq(0.2, rate=0.5, levels=5, blocks=2, period=3),
    "fedomd": ms.fedomd(0.05, sync=parts.every(7, offset=2)),
    "given syncs": ms.fedomd(0.05, sync=parts.after_steps([3, 4, 17, 25])),
    "adam": ms.fedogd(0.2, server=parts.optimizer("adam", learning_rate=0.01)),
}


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(0)
    shown = draw.normal(size=(STEPS * CLIENTS, 3))
    noise = 0.3 * draw.normal(size=len(shown))
    return shown, (shown @ [1.0, -2.0, 0.5] + noise > 0).astype(np.int32)


def simulated(algorithm, rows, dtype="float64"):
    stream = ms.streams.arrays(*rows, keys=np.tile(np.arange(CLIENTS), STEPS))
    return ms.simulate(algorithm, PROBLEM, stream, steps=STEPS, dtype=dtype, measure=()).model


def alike(found, wanted, close):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, atol=close)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_simulation_in_pieces_is_the_simulation(name, rows):
    going = Ongoing(ALGORITHMS[name], PROBLEM, clients=CLIENTS, dtype="float64")
    shown, hidden = (array.reshape(STEPS, CLIENTS, *array.shape[1:]) for array in rows)
    begin = 0
    for count in (1, 9, 20):
        going.advance(shown[begin : begin + count], hidden[begin : begin + count])
        going = pickle.loads(pickle.dumps(going))
        begin += count
    assert going.step == STEPS
    alike(going.model, simulated(ALGORITHMS[name], rows), 1e-12)


def test_rows_wait_until_every_client_has_one(rows):
    shown, hidden = rows
    learner = ms.sklearn.OnlineClassifier(ms.fedogd(0.2), clients=CLIENTS)
    learner.partial_fit(shown[:3], hidden[:3], classes=[0, 1])
    with pytest.raises(BadData, match="each of 4 clients"):
        learner.predict(shown)
    learner.partial_fit(shown[3:50], hidden[3:50])
    learner.partial_fit(shown[50:], hidden[50:])
    alike(learner.model_, simulated(ms.fedogd(0.2), rows, "float32"), 1e-6)
    assert learner.learner_.step == STEPS


def test_labels_may_be_words_and_chances_are_those_of_softmax(rows):
    shown, hidden = rows
    words = np.array(["no", "yes"])[hidden]
    learner = ms.sklearn.OnlineClassifier(ms.fedogd(0.5), epochs=3).fit(shown, words)
    assert learner.classes_.tolist() == ["no", "yes"]
    assert learner.score(shown, words) > 0.85
    found = learner.predict_proba(shown)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.predict_proba(shown), found)
    np.testing.assert_array_equal(
        again.partial_fit(shown, words).predict(shown[:1]), ["yes"] if found[0, 1] > 0.5 else ["no"]
    )


def test_what_does_not_fit_is_refused(rows):
    shown, hidden = rows
    learner = ms.sklearn.OnlineClassifier()
    with pytest.raises(NotFittedError):
        learner.predict(shown)
    with pytest.raises(ValueError, match="classes must be passed"):
        learner.partial_fit(shown, hidden)
    learner.partial_fit(shown, hidden, classes=[0, 1])
    with pytest.raises(ValueError, match=r"did not name: \[7\]"):
        learner.partial_fit(shown[:1], [7])
    with pytest.raises(ValueError, match="4 features"):
        learner.predict(np.zeros((1, 4)))
    with pytest.raises(ValueError, match="NaN"):
        learner.partial_fit(np.full((1, 3), np.nan), [0])


def test_it_predicts_in_the_precision_in_which_it_learns():
    draw = np.random.default_rng(0)
    shown = draw.normal(size=(50, 3))
    hidden = shown @ [1.0, -2.0, 0.5]
    learner = ms.sklearn.OnlineRegressor(ms.fedogd(0.1), dtype="float64").fit(shown, hidden)
    wanted = shown @ learner.model_[:3] + learner.model_[3]
    np.testing.assert_allclose(learner.predict(shown), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("problem", "has"),
    [
        (ms.problems.softmax(3, 2), "2 classes"),
        (ms.problems.softmax(3, 4), "4 classes"),
        (ms.problems.linear(3), "a number"),
        (lambda features, classes: ms.problems.logistic(features), "2 classes"),
    ],
    ids=["two", "four", "a number", "a function"],
)
def test_a_problem_of_other_classes_is_refused(problem, has, rows):
    labels = np.arange(len(rows[1])) % 3
    with pytest.raises(ms.MainstemError, match=f"OnlineClassifier: problem must have 3.*{has}"):
        ms.sklearn.OnlineClassifier(problem=problem).fit(rows[0], labels)


def test_problems_that_fit(rows):
    two = ms.sklearn.OnlineClassifier(problem=ms.problems.logistic(3)).fit(*rows)
    assert two.score(*rows) > 0.8
    one = ms.sklearn.OnlineClassifier().fit(rows[0], np.full(len(rows[1]), "only"))
    assert set(one.predict(rows[0])) == {"only"}
    with pytest.raises(ms.MainstemError, match=r"OnlineRegressor: problem must have a number"):
        ms.sklearn.OnlineRegressor(problem=ms.problems.logistic(3)).fit(*rows)


def test_a_refused_first_call_leaves_nothing_behind(rows):
    shown, hidden = rows
    learner = ms.sklearn.OnlineClassifier()
    with pytest.raises(ValueError, match="did not name"):
        learner.partial_fit(shown, hidden, classes=[0, 7])
    assert not hasattr(learner, "classes_")
    learner.set_params(problem=ms.problems.softmax(3, 5))
    with pytest.raises(ms.MainstemError, match="problem must have 2 classes"):
        learner.partial_fit(shown, hidden, classes=[0, 1])
    learner.set_params(problem=ms.problems.softmax(4, 2))
    with pytest.raises(ms.MainstemError, match="features"):
        learner.partial_fit(shown, hidden, classes=[0, 1])
    with pytest.raises(NotFittedError):
        learner.predict(shown)
    learner.set_params(problem=None).partial_fit(shown, hidden, classes=[1, 0, 2])
    assert learner.classes_.tolist() == [0, 1, 2]


def test_classes_of_a_later_call_are_those_of_the_first(rows):
    shown, hidden = rows
    learner = ms.sklearn.OnlineClassifier().partial_fit(shown, hidden, classes=[0, 1])
    learner.partial_fit(shown, hidden, classes=[1, 0])
    with pytest.raises(ValueError, match=r"classes=\[0, 1, 2\] is not the same as on the first"):
        learner.partial_fit(shown, hidden, classes=[0, 1, 2])


def test_a_problem_of_ones_own_in_a_pipeline():
    pixels, digits = load_digits(return_X_y=True)
    network = ms.problems.mlp(features=64, hidden=[16], classes=10)
    learner = ms.sklearn.OnlineClassifier(ms.fedogd(0.1), network, clients=4, epochs=4)
    chain = make_pipeline(MinMaxScaler(), learner).fit(pixels[:1200], digits[:1200])
    assert chain.score(pixels[1200:], digits[1200:]) > 0.8


def test_a_regressor_learns_a_line():
    draw = np.random.default_rng(1)
    shown = draw.normal(size=(400, 2))
    target = shown @ [2.0, -1.0] + 3
    learner = ms.sklearn.OnlineRegressor(ms.fedogd(0.3), clients=5).fit(shown, target)
    assert learner.score(shown, target) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["OnlineClassifier", "OnlineRegressor"])
def test_it_passes_the_checks_of_scikit_learn(kind):
    check_estimator(getattr(ms.sklearn, kind)(), on_skip=None)


def test_by_default_features_may_have_any_unit():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(300, 2))
    for scale, offset in [(1, 0), (1, 100), (1e4, 0), (1e-3, 0)]:
        found = ms.sklearn.OnlineRegressor().fit(scale * x + offset, x[:, 0])
        assert np.isfinite(found.predict(scale * x + offset)).all()
