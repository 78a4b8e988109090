"""Features in two groups, and clients that sometimes see nothing."""

import jax.numpy as jnp
import numpy as np
import pytest

from mainstem import problems
from mainstem.errors import BadData, BadParameter
from mainstem.streams import alternating, arrays, generated, residuals, sometimes, split, walking
from tests.streams.replayed import replayed

X = np.arange(24.0).reshape(6, 4) + 1
Y = np.arange(6.0)


def rows():
    return arrays(X, Y, clients=3)


def test_columns_go_to_their_groups():
    whole, parted = replayed(rows(), 5), replayed(split(rows(), shared=[3, 0], own=[2, 1]), 5)
    np.testing.assert_array_equal(parted.shown[0], whole.shown[..., [3, 0]])
    np.testing.assert_array_equal(parted.shown[1], whole.shown[..., [2, 1]])
    np.testing.assert_array_equal(parted.hidden, whole.hidden)


def test_each_client_has_its_own_columns_padded_with_zeros():
    own = [[1], [1, 2, 3], [2, 3]]
    whole, parted = replayed(rows(), 5), replayed(split(rows(), shared=[0], own=own), 5)
    assert parted.shown[1].shape == (5, 3, 3)
    for k, columns in enumerate(own):
        mine = parted.shown[1][:, k]
        np.testing.assert_array_equal(mine[:, : len(columns)], whole.shown[:, k][:, columns])
        assert not mine[:, len(columns) :].any()


def test_a_column_may_be_in_both_groups_if_overlap_is_allowed():
    both = replayed(split(rows(), shared=range(4), own=[0, 1], overlap=True), 2)
    np.testing.assert_array_equal(both.shown[0][..., :2], both.shown[1])


def test_the_rows_are_known_where_they_are_the_same_for_all():
    known = split(rows(), shared=[3, 0], own=[2, 1]).rows()
    np.testing.assert_array_equal(known.shown[0], X[:, [3, 0]])
    np.testing.assert_array_equal(known.shown[1], X[:, [2, 1]])
    assert split(rows(), shared=[0], own=[[1, 2, 3]] * 3).rows() is None
    problems.personal(2, 2).check(known.shown, known.hidden)


def test_a_generated_stream_can_be_split():
    made = generated(lambda key, t, k: (t + jnp.arange(3.0), k), clients=2)
    got = replayed(split(made, shared=[1], own=[0, 2]), 4)
    np.testing.assert_array_equal(got.shown[0][:, 0], [[2], [3], [4], [5]])


REFUSED = {
    "no stream": (lambda: split(X, [0], [1]), "stream must be a stream such as digits"),
    "overlap": (
        lambda: split(rows(), [0, 1], [1, 2, 3]),
        r"own must share no column with shared, or say overlap=True, got \[1\]",
    ),
    "one client's overlap": (
        lambda: split(rows(), [0, 1], [[2, 3], [2], [1, 3]]),
        r"no column with shared \(client 2\), or say overlap=True, got \[1\]",
    ),
    "left out": (
        lambda: split(rows(), [0], [1, 3]),
        r"own must leave out none of 4 columns, got \[2\]",
    ),
    "left out by all": (lambda: split(rows(), [0], [[1], [3], [1]]), r"none of 4.*got \[2\]"),
    "beyond": (lambda: split(rows(), [0, 4], [1, 2, 3]), "shared must list different columns"),
    "below": (lambda: split(rows(), [0], [-1, 1, 2, 3]), "own must list different columns from 0"),
    "twice": (lambda: split(rows(), [0, 0], [1, 2, 3]), "shared must list different columns"),
    "fractions": (lambda: split(rows(), [0.0], [1, 2, 3]), "shared must list different columns"),
    "none": (lambda: split(rows(), [], [0, 1, 2, 3]), "shared must list different columns"),
    "no own": (lambda: split(rows(), [0, 1, 2, 3], []), "own must list different columns"),
    "a table": (lambda: split(rows(), [[0]], [1, 2, 3]), "shared must list different columns"),
    "a number": (lambda: split(rows(), [0, 1, 2], 3), "own must list different columns"),
    "nothing": (lambda: split(rows(), [0, 1, 2], None), "own must list different columns"),
    "ragged": (
        lambda: split(rows(), [0], [[1], [2, 3]]),
        "own must have a list for each of 3 clients",
    ),
    "half ragged": (lambda: split(rows(), [0], [[1], 2, 3]), "own must list different columns"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_splits_that_do_not_fit_are_refused(case):
    build, message = REFUSED[case]
    with pytest.raises(BadParameter, match=f"split: .*{message}"):
        build()


@pytest.mark.parametrize("stream", [residuals(3, 2, 2), walking(3, holds=4), alternating(3)])
def test_only_one_vector_of_features_can_be_split(stream):
    with pytest.raises(BadData, match="split: wants samples with one vector of features"):
        split(stream, [0], [1])


def test_each_client_sees_something_at_its_rate():
    rates = np.array([1.0, 0.5, 0.1])
    stream = sometimes(rows(), rate=rates)
    got, whole = replayed(stream, 4000), replayed(rows(), 4000)
    assert set(np.unique(got.count)) == {0, 1}
    np.testing.assert_allclose(got.count.mean(axis=0), rates, atol=4.5 * 0.5 / np.sqrt(4000))
    assert got.count[:, 0].all()
    here = got.count > 0
    np.testing.assert_array_equal(got.shown[here], whole.shown[here])  # what there is stays
    assert not got.shown[~here].any()  # and where nothing is there is nothing to be read
    correlation = np.corrcoef(got.count[:, 1], got.count[:, 2])[0, 1]
    assert abs(correlation) < 4.5 / np.sqrt(4000)  # clients come and go on their own
    again = np.corrcoef(got.count[1:, 1], got.count[:-1, 1])[0, 1]
    assert abs(again) < 4.5 / np.sqrt(4000)
    assert stream.rows() is None


def test_a_batch_comes_whole_or_not_at_all():
    batches = replayed(sometimes(walking(2, holds=[3, 5]), rate=0.6), 400).count
    assert {*batches[:, 0]} == {0, 3}
    assert {*batches[:, 1]} == {0, 5}


def test_nothing_is_expected_of_who_may_not_come():
    """The wrapped stream's expected losses are those of clients that are always there."""
    assert alternating(3).expected is not None
    assert sometimes(alternating(3), rate=0.5).expected is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stream": X}, "stream must be a stream such as digits"),
        ({"rate": 0.0}, r"rate must lie in \(0, 1\], got 0.0"),
        ({"rate": 1.1}, r"rate must lie in \(0, 1\]"),
        ({"rate": "half"}, r"rate must lie in \(0, 1\]"),
        ({"rate": [0.5, np.nan, 0.5]}, r"rate must lie in \(0, 1\]"),
        ({"rate": [0.5, 0.5]}, "rate must have one entry for each of 3 clients"),
    ],
)
def test_rates_that_do_not_fit_are_refused(given, message):
    with pytest.raises(BadParameter, match=f"sometimes: {message}"):
        sometimes(**({"stream": rows(), "rate": 0.5} | given))


def test_a_client_that_is_present_has_its_entire_batch():
    """Not the first sample of it: a batch without a count is all of its samples."""
    batches = walking(3, holds=12)
    got = replayed(sometimes(batches, rate=0.5), 20)
    assert set(np.unique(got.count)) == {0, 12}
