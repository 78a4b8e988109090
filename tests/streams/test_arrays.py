"""Rows in memory."""

import numpy as np
import pytest

from mainstem import random
from mainstem.base import At
from mainstem.errors import BadData
from mainstem.streams import arrays, by_key, evenly, in_batches, in_time

X = np.arange(30.0).reshape(10, 3)
Y = np.arange(10)
AT = At(1, 0, random.root(0))


def test_a_sample_is_the_row_in_its_place():
    stream = arrays(X, Y, clients=4)
    for (t, k), row in np.ndenumerate(stream.places(0, 1, 2)):
        sample = stream.sample((), At(1 + t, k, AT.key), stream.drawn(0))
        np.testing.assert_array_equal(sample.shown, X[row])
        assert sample.hidden == Y[row]
    np.testing.assert_array_equal(stream.rows().shown, X)
    np.testing.assert_array_equal(stream.rows().hidden, Y)
    assert (stream.clients, stream.steps) == (4, None)


def test_evenly_is_the_default_deal():
    np.testing.assert_array_equal(
        arrays(X, Y, clients=4).places(3, 1, 9),
        arrays(X, Y, clients=4, deal=evenly()).places(3, 1, 9),
    )


def test_clients_have_the_names_of_their_keys_where_rows_are_dealt_by_key():
    keys = ["oak", "elm", "oak", "ash", "elm"] * 2
    stream = arrays(X, Y, keys=keys)
    assert stream.names == ("ash", "elm", "oak")
    assert in_batches(stream, 2).names == stream.names
    assert arrays(X, Y, 3, keys=keys, deal=evenly()).names is None
    assert arrays(X, Y, 3).names is None


def test_lists_and_images_are_arrays_too():
    stream = arrays([[1.0], [2.0]], [0, 1], clients=2)
    assert stream.device.features.shape == (2, 1)
    assert arrays(np.zeros((5, 4, 4)), np.zeros(5), clients=1).device.features.shape == (5, 4, 4)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_gap_is_refused_with_its_row_and_client(wrong):
    x, y = X.copy(), Y.astype(float)
    x[7, 1] = wrong
    with pytest.raises(BadData, match=rf"features row 7 \(client 1\) holds {wrong}"):
        arrays(x, y, clients=2, deal=in_time())
    with pytest.raises(BadData, match=r"features row 7 \(client 2\)"):
        arrays(x, y, deal=by_key(), keys=[0, 1, 0, 1, 0, 1, 0, 2, 2, 2])
    with pytest.raises(BadData, match=r"features row 7 \(dealt to every client in turn\)"):
        arrays(x, y, clients=2)
    y[4] = wrong
    with pytest.raises(BadData, match=rf"target row 4 \(client 0\) holds {wrong}"):
        arrays(X, y, clients=2, deal=in_time())


@pytest.mark.parametrize(
    ("features", "target", "message"),
    [
        (X, Y[:9], "10 rows of features but 9 targets"),
        (X[:0], Y[:0], "there are no rows"),
        (5.0, Y, r"features must be rows of numbers, got float64 of shape \(\)"),
        (X, 5, r"target must be rows of numbers, got int64 of shape \(\)"),
        ("array float64 (1797, 64) sha256 1234", Y, "features must be rows of numbers"),
        (np.full((10, 2), "a"), Y, "features must be rows of numbers, got <U1"),
        (X, np.full((10, 2), "a"), "target must be rows of numbers"),
        ([[1.0, 2.0], [3.0]], [1, 2], "features must have rows of equal length"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(features, target, message):
    with pytest.raises(BadData, match="arrays: " + message):
        arrays(features, target, clients=2)


def test_keys_must_fit_the_rows():
    with pytest.raises(BadData, match="by_key: 20 keys but 10 rows"):
        arrays(X, Y, deal=by_key(), keys=[0, 1] * 10)
    with pytest.raises(BadData, match="by_key: the data has no key"):
        arrays(X, Y, deal=by_key())
