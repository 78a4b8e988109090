"""Real data as streams."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mainstem import datasets
from mainstem.datasets import Table
from mainstem.errors import BadParameter
from mainstem.streams import by_label, dataset, digits


def test_digits_are_scikit_learns_scaled_to_one():
    stream = digits(clients=100)
    features, target = load_digits(return_X_y=True)
    shown, hidden, _ = stream.rows()
    np.testing.assert_allclose(shown, features / 16)
    np.testing.assert_array_equal(hidden, target)
    assert (shown.dtype, hidden.dtype) == (np.float32, np.int32)
    assert (shown.min(), shown.max()) == (0, 1)
    assert (stream.clients, stream.steps) == (100, None)


def test_digits_can_be_dealt_by_label():
    skewed = digits(clients=10, deal=by_label(0.3)).places(0, 1, 40)
    labels = digits(clients=10).rows().hidden[skewed]
    kinds = [len(set(labels[:, k].tolist())) for k in range(10)]
    assert np.mean(kinds) < 8


def test_an_unknown_dataset_is_refused():
    with pytest.raises(BadParameter, match="there is no 'nonsense'; known are mnist"):
        dataset("nonsense", clients=3)


def test_held_out_rows_are_left_out_and_sites_are_clients(monkeypatch):
    table = Table(
        features=np.arange(12.0).reshape(6, 2),
        target=np.arange(6.0),
        classes=None,
        held_out=2,
        keys=np.array([*"bababa"]),
    )
    monkeypatch.setattr(datasets, "load", lambda name: table)
    stream = dataset("anything")
    assert (stream.clients, stream.steps) == (2, 2)
    np.testing.assert_array_equal(stream.rows().hidden, [0, 1, 2, 3])
    np.testing.assert_array_equal(stream.places(0, 1, 2), [[1, 0], [3, 2]])
    monkeypatch.setattr(datasets, "load", lambda name: table._replace(keys=None))
    assert dataset("anything", clients=3).clients == 3
