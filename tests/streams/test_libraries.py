"""Data of River, scikit-learn and Hugging Face, with the real libraries."""

import datasets as hugging_face
import numpy as np
import pytest
from river import datasets
from river.datasets import synth
from sklearn.datasets import load_diabetes

import mainstem as ms
from mainstem.errors import BadData, BadParameter
from mainstem.streams import arrays, frame, river


def test_a_dataset_of_river_is_dealt_in_turn():
    stream = river(datasets.Phishing(), clients=5)
    assert (stream.clients, stream.steps, stream.labels) == (5, 250, (False, True))
    names = sorted(next(iter(datasets.Phishing()))[0])
    places = stream.places(0, 1, 250)
    for n, (x, y) in enumerate(datasets.Phishing().take(12)):
        row = places[n // 5, n % 5]
        np.testing.assert_array_equal(stream.features[row], [x[name] for name in names])
        assert stream.labels[stream.table.target[row]] == y
    run = ms.simulate(ms.fedogd(0.5), ms.problems.logistic(9), stream, steps=250)
    assert run.accuracy[-1] > 0.8


def test_a_generator_with_drift_comes_to_all_clients_at_once():
    before, after = synth.SEA(variant=0, seed=1), synth.SEA(variant=3, seed=2)
    drift = synth.ConceptDriftStream(before, after, seed=1, position=2000, width=50)
    stream = river(drift, clients=10, count=4000)
    features = (stream.features - 5) / 5
    scaled = arrays(features, stream.target, keys=stream.keys)
    run = ms.simulate(ms.fedogd(0.5), ms.problems.logistic(3), scaled, steps=400)
    again = river(drift, clients=10, count=4000)
    assert again == stream
    assert run.loss[200:220].mean() > run.loss[150:200].mean()


def test_regression_and_words():
    assert river(datasets.TrumpApproval(), clients=3).labels is None
    with pytest.raises(BadData, match="give width"):
        river(Words(), clients=2)
    hashed = river(Words(), clients=2, width=32)
    assert hashed.features.width == 32


class Words:
    """A dataset with words and keys that change."""

    task, n_samples = "Binary classification", 4

    def __iter__(self):
        yield from [({"a": "x"}, True), ({"b": 1}, False), ({"a": "y"}, True), ({}, False)]


def test_what_is_no_dataset_is_refused():
    with pytest.raises(BadParameter, match="be given for a generator"):
        river(synth.SEA(seed=1), clients=2)
    with pytest.raises(BadParameter, match="be a dataset of River"):
        river([1, 2], clients=2)


def test_scikit_learn():
    bunch = load_diabetes()
    stream = arrays(bunch.data, bunch.target, clients=4)
    assert stream.rows().shown.shape == (442, 10)


def test_hugging_face():
    data = hugging_face.Dataset.from_dict(
        {"site": ["a", "b", "a"], "heat": [1.0, 2.0, 3.0], "state": ["on", "off", "on"]}
    )
    stream = frame(data, "state", "site", classes=True)
    assert (stream.clients, stream.labels) == (2, ("off", "on"))
    np.testing.assert_array_equal(stream.features, [[1.0], [2.0], [3.0]])
    some = data.select([2, 0])
    np.testing.assert_array_equal(
        frame(some, "state", "site", classes=True).features, [[3.0], [1.0]]
    )


def test_a_table_whose_error_has_no_text_is_refused():
    class Table:
        def __arrow_c_stream__(self, requested_schema=None):
            raise TypeError

    with pytest.raises(BadData, match=r"wants a data frame of .*: TypeError"):
        frame(Table(), "state")
