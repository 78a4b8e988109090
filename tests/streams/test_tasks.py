"""Related tasks: who gets which rows, what is held out, and how it is judged."""

import jax
import numpy as np
import pytest

from mainstem import datasets
from mainstem.datasets import Table
from mainstem.errors import BadData, BadParameter
from mainstem.streams import tasks
from tests.streams.replayed import replayed

CLASSES, WIDTH, ROWS = 10, 5, 400


@pytest.fixture
def table(monkeypatch):
    """Entry (n, j) is n + 1000 j, so that every number identifies its row and its column."""
    features = np.arange(ROWS)[:, None] + 1000.0 * np.arange(WIDTH)
    mixed = np.random.default_rng(0).permutation
    target = np.concatenate([mixed(np.arange(n) % CLASSES) for n in (ROWS - 100, 100)])
    made = Table(
        features.astype(np.float32), target.astype(np.int32), classes=CLASSES, held_out=100
    )
    monkeypatch.setattr(datasets, "load", lambda name: made)
    return made


def dealt(stream, steps, seed=0):
    """(row, label) of each step and client, and the shared and own columns."""
    got = replayed(stream, steps, seed)
    both = np.concatenate(got.shown, axis=-1).astype(int)
    rows, columns = both % 1000, both // 1000
    assert np.all(rows == rows[..., :1])  # of one row each
    assert np.all(columns == columns[0, 0])  # in the same order for all
    cut = got.shown[0].shape[-1]
    return rows[..., 0], got.hidden, columns[0, 0, :cut], columns[0, 0, cut:]


# 300 rows to deal: 90 of the merged classes. 12 each for 6 clients is sure; 30 each is cut to 15.
@pytest.mark.parametrize(("most", "each"), [(12, 12), (30, 15)])
@pytest.mark.parametrize("seed", [0, 5])
def test_each_client_has_its_own_balanced_task(table, most, each, seed):
    stream = tasks("anything", clients=6, most=most)
    rows, labels, shared, own = dealt(stream, 2 * 2 * each, seed)
    np.testing.assert_array_equal(rows[: 2 * each], rows[2 * each :])  # again and again
    rows, labels = rows[: 2 * each], labels[: 2 * each]
    assert len({*rows.ravel()}) == rows.size  # all disjoint
    assert rows.max() < ROWS - 100  # the source's test rows are never dealt
    np.testing.assert_array_equal(labels.sum(axis=0), each)
    classes = table.target[rows]
    merged = {*classes[labels == 0]}
    assert len(merged) <= 3  # floor(0.3 * 10)
    for k in range(6):
        (own_class,) = {*classes[:, k][labels[:, k] == 1]}
        assert own_class not in merged
    assert sorted([*shared, *own]) == [*range(WIDTH)]
    assert len(shared) == WIDTH // 2


def test_without_test_rows_some_are_spared(table, monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda name: table._replace(held_out=0))
    stream = tasks("anything", clients=4, most=5, shared=3)
    rows, labels, shared, _ = dealt(stream, 10)
    paper = stream.exam(0)
    spared = paper.shown[0][:, 0].astype(int) % 1000
    assert len({*spared}) == 120  # 30 %
    assert not {*spared} & {*rows.ravel()}
    assert len(shared) == 3
    np.testing.assert_array_equal(labels.sum(axis=0), 5)
    assert {*stream.exam(1).shown[0][:, 0]} != {*paper.shown[0][:, 0]}


def test_an_exam_judges_each_client_in_its_own_task(table):
    stream = tasks("anything", clients=6, most=12)
    rows, labels, shared, own = dealt(stream, 24)
    paper = stream.exam(0)
    held = paper.shown[0][:, 0].astype(int) % 1000
    np.testing.assert_array_equal(held, np.arange(ROWS - 100, ROWS))
    for part, columns in zip(paper.shown, (shared, own), strict=True):
        np.testing.assert_array_equal(part[0].astype(int) // 1000, columns)
    np.testing.assert_allclose(paper.weights.sum(axis=1), 1)
    merged = {*table.target[rows][labels == 0]}
    for k in range(6):
        own_class = table.target[rows[:, k][labels[:, k] == 1]][0]
        mine, zero = table.target[held] == own_class, np.isin(table.target[held], [*merged])
        np.testing.assert_array_equal(paper.hidden[k], mine)
        np.testing.assert_allclose(paper.weights[k, mine], 0.5 / mine.sum())
        np.testing.assert_allclose(paper.weights[k, zero], 0.5 / zero.sum())
        assert not paper.weights[k, ~(mine | zero)].any()


def test_the_seed_is_the_draw(table):
    stream, again = (tasks("anything", clients=6, most=12) for _ in range(2))
    for seed in (0, 1):
        for made in ("drawn", "exam"):
            one, two = (jax.tree.leaves(getattr(s, made)(seed)) for s in (stream, again))
            for mine, same in zip(one, two, strict=True):
                np.testing.assert_array_equal(mine, same)
    assert not np.array_equal(stream.drawn(0).cycle.shared, stream.drawn(1).cycle.shared)


def test_a_seed_that_leaves_too_few_is_refused(table, monkeypatch):
    """Four classes, one of ten rows: 4 of them are all but sure to be left, but not for every seed."""
    target = np.random.default_rng(0).permutation(np.where(np.arange(ROWS) < 10, 0, 1))
    target = np.where(target == 1, 1 + np.arange(ROWS) % 3, 0).astype(np.int32)
    monkeypatch.setattr(
        datasets, "load", lambda name: table._replace(target=target, classes=4, held_out=0)
    )
    stream = tasks("anything", clients=1, most=4)
    refused = 0
    for seed in range(700):
        try:
            labels = stream.drawn(seed).cycle.labels[:, 0]
        except BadData as error:
            refused += 1
            assert f"tasks: seed {seed} leaves " in str(error)  # noqa: PT017
            continue
        assert (len(labels), labels.sum()) == (8, 4)
    assert 0 < refused < 10


def test_what_cannot_be_dealt_is_refused(table, monkeypatch):
    for name, value in (("clients", 0), ("most", 0), ("shared", 0), ("shared", WIDTH)):
        with pytest.raises(BadParameter, match=f"tasks: {name} must be an integer of at least 1"):
            tasks("anything", **({"clients": 3} | {name: value}))
    with pytest.raises(BadData, match="samples of the merged classes are too few for 200 clients"):
        tasks("anything", clients=200).drawn(0)
    few = np.where(np.arange(ROWS) < 30, np.arange(ROWS) % 3, 3)  # ten of each class but one
    monkeypatch.setattr(datasets, "load", lambda name: table._replace(target=few, classes=4))
    crowded = tasks("anything", clients=40, most=2)
    messages = set()
    for seed in range(30):
        with pytest.raises(BadData) as refusal:
            crowded.drawn(seed)
        messages.add(str(refusal.value))
    assert messages == {
        "tasks: 10 samples of the merged classes are too few for 40 clients",
        "tasks: 15 buckets of 2 samples are too few for 40 clients",
    }
    for odd in ({"classes": None}, {"classes": 3}):
        monkeypatch.setattr(datasets, "load", lambda name, odd=odd: table._replace(**odd))
        with pytest.raises(BadData, match="tasks: anything must have at least 4 classes"):
            tasks("anything", clients=3)
    absent = np.where(np.arange(ROWS) < 300, table.target, 0)
    monkeypatch.setattr(datasets, "load", lambda name: table._replace(target=absent))
    with pytest.raises(BadData, match=r"tasks: no sample of .* is held out for client 0, seed 0"):
        tasks("anything", clients=3).exam(0)


def test_letters(filled):
    """Real data, as in Section 6.1: 26 letters, 7 of them merged."""
    stream = tasks("letter", clients=50, most=30)
    run, paper = stream.drawn(0), stream.exam(0)
    assert run.cycle.labels.shape == (60, 50)
    np.testing.assert_array_equal(run.cycle.labels.sum(axis=0), 30)
    assert (run.cycle.shared.shape[-1], run.cycle.own.shape[-1]) == (8, 8)
    np.testing.assert_allclose(paper.weights.sum(axis=1), 1)
    assert set(np.unique(paper.hidden)) == {0, 1}
