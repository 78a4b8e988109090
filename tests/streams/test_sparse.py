"""Sparse matrices and hashed dicts as features."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import mainstem as ms
from mainstem.errors import BadData, BadParameter
from mainstem.streams.sparse import dense

T = 8
TABLE = scipy.sparse.random(24, 6, density=0.3, random_state=3, dtype=np.float64)
TARGET = np.random.default_rng(0).integers(0, 2, 24)
ROWS = [
    {"heat": 2.5, "state": "on"},
    {"wind": 7, "state": "off", "heat": None},
    {"heat": 1.0, "new": True},
    {},
]


def run(features, problem, **settings):
    stream = ms.streams.arrays(features, TARGET, clients=3)
    return ms.simulate(ms.fedogd(0.5), problem, stream, steps=T, dtype="float64", **settings)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_a_sparse_matrix_is_the_dense_one(format):
    problem = ms.problems.logistic(6)
    found, wanted = run(TABLE.asformat(format), problem), run(TABLE.toarray(), problem)
    np.testing.assert_allclose(found.loss, wanted.loss, rtol=1e-12)
    np.testing.assert_allclose(found.regret().values, wanted.regret().values, atol=1e-9)


def test_its_shape_and_its_labels_are_checked():
    with pytest.raises(BadData, match="features of shape"):
        run(TABLE.tocsr(), ms.problems.logistic(5))
    target = TARGET.copy()
    target[-1] = 7  # not among the samples of step 1
    stream = ms.streams.arrays(TABLE.tocsr(), target, clients=3)
    with pytest.raises(BadData, match="row 23 has 7"):
        ms.simulate(ms.fedogd(0.5), ms.problems.logistic(6), stream, steps=2)
    wrong = TABLE.tocsr().copy()
    wrong.data[0] = np.nan
    with pytest.raises(BadData, match=r"features row 0 .* holds nan"):
        ms.streams.arrays(wrong, TARGET, clients=3)
    with pytest.raises(BadParameter, match="dense rows"):
        ms.streams.arrays(TABLE.tocsr(), TARGET, clients=3, missing=ms.parts.last_value())


def test_sparse_streams_are_values():
    one, two = (ms.streams.arrays(TABLE.tocsr(), TARGET, clients=3) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != ms.streams.arrays(2 * TABLE.tocsr(), TARGET, clients=3)


def test_dicts_are_hashed_as_by_hand():
    """Signs and columns are those of the first release: other machines have them in their models."""
    np.testing.assert_array_equal(np.flatnonzero(dense({"heat": 2.5}, 1024)), [591])
    assert dense({"heat": 2.5}, 1024)[591] == 2.5
    both = dense({"heat": 2.5, "state": "on"}, 1024)
    np.testing.assert_array_equal(both, dense({"heat": 2.5}, 1024) + dense({"state": "on"}, 1024))
    assert np.any(dense({"state": "on"}, 1024) != dense({"state": "off"}, 1024))
    np.testing.assert_array_equal(dense({"a": None}, 8), np.zeros(8))
    signs = [dense({f"key {n}": 1.0}, 4).sum() for n in range(400)]
    assert abs(np.mean(signs)) < 0.15


def test_rows_may_have_any_keys():
    stream = ms.streams.hashed(ROWS, ["bad", "good", "bad", "good"], width=32, clients=2)
    assert stream.labels == ("bad", "good")
    for n, row in enumerate(ROWS):
        np.testing.assert_allclose(stream.features.row(n), dense(row, 32))
    made = ms.simulate(ms.fedogd(0.5), ms.problems.logistic(32), stream, steps=2)
    assert np.isfinite(made.loss).all()


def test_a_frame_with_words_and_gaps():
    frame = pd.DataFrame(
        {
            "site": ["a", "b", "a"],
            "heat": [1.5, None, 2.0],
            "kind": ["x", "y", None],
            "bad": [True, False, True],
        }
    )
    stream = ms.streams.hashed(frame, "bad", 16, keys="site")
    assert (stream.clients, stream.steps, stream.labels) == (2, 2, (False, True))
    for n, row in enumerate([{"heat": 1.5, "kind": "x"}, {"kind": "y"}, {"heat": 2.0}]):
        np.testing.assert_allclose(stream.features.row(n), dense(row, 16))


@pytest.mark.parametrize(
    ("rows", "target", "words"),
    [
        ([{"a": [1]}], [0], "row 0: a must be a number or a word"),
        ([{"a": 1}, {"a": np.inf}], [0, 1], "row 1: a must be finite"),
        ([{"a": 1}, {"b": 1}], "a", "row 1 has no 'a', which is its target"),
        (3, [0], "wants a data frame"),
    ],
)
def test_other_rows_are_refused(rows, target, words):
    with pytest.raises(BadData, match=words):
        ms.streams.hashed(rows, target, 8, clients=1)
