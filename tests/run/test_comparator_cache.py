"""Comparators in the folder of a run are read again, and never used for other data."""

import numpy as np
import pytest

import mainstem as ms
from mainstem.measure import comparators
from mainstem.run import comparator_cache

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(60, 2))
LABELS = (X @ [1.0, -1.0] + 0.5 * DRAW.normal(size=60) > 0).astype(int)
PROBLEM = ms.problems.logistic(2, ridge=0.1)


def stream(features=X):
    return ms.streams.arrays(features, LABELS, clients=3)


@pytest.fixture
def solved(monkeypatch):
    """The prefixes that were solved."""
    asked = []
    real = comparators._solved

    def counted(method, question, prefixes, weights):
        asked.append(prefixes)
        return real(method, question, prefixes, weights)

    monkeypatch.setattr(comparators, "_solved", counted)
    return asked


@pytest.fixture
def folder(tmp_path):
    ms.simulate(ms.fedogd(0.1), PROBLEM, stream(), steps=20, seeds=3, folder=tmp_path / "run")
    return tmp_path / "run"


def loaded(folder, data=None):
    return ms.load(folder, stream=data or stream())


def test_what_was_solved_once_is_read_again(folder, solved):
    first = loaded(folder).regret("curve")
    assert len(solved) == 3
    again = loaded(folder).regret("curve")
    assert len(solved) == 3
    for name in ("values", "gaps", "params"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert first.statement == again.statement
    assert ms.load(folder).loss.shape == (3, 20)  # the run itself is as it was


def test_a_damaged_file_is_solved_again(folder, solved):
    first = loaded(folder).regret()
    for path in (folder / comparator_cache.FOLDER).iterdir():
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    again = loaded(folder).regret()
    assert len(solved) == 6
    assert np.array_equal(first.values, again.values)


def test_other_data_is_refused(folder, solved):
    with pytest.raises(ms.MainstemError, match="load: stream is not that of the run: features is"):
        loaded(folder, stream(X + 1))
    with pytest.raises(ms.MainstemError, match="stream is not that of the run: features is"):
        loaded(folder).regret(stream=stream(X + 1))
    other = PROBLEM.replace(ridge=0.2)
    with pytest.raises(ms.MainstemError, match=r"problem is not .*: ridge is 0\.2 here"):
        ms.load(folder, problem=other)


def test_a_file_that_changed_is_other_data(tmp_path):
    def written(shift):
        pairs = enumerate(zip(X[:, 0], X[:, 1], strict=True))
        rows = [f"{k % 3},{x + shift},{y}" for k, (x, y) in pairs]
        (tmp_path / "data.csv").write_text("\n".join(["site,x,y", *rows]))
        return ms.streams.csv(tmp_path / "data.csv", target="y", key="site")

    problem, folder = ms.problems.linear(1, ridge=0.1), tmp_path / "run"
    ms.simulate(ms.fedogd(0.1), problem, written(0), steps=20, folder=folder)
    assert float(ms.load(folder).regret()) > 0
    other = written(100)
    with pytest.raises(ms.MainstemError, match=r"has changed since: .*: give regret"):
        ms.load(folder).regret()
    with pytest.raises(
        ms.MainstemError, match=r"another experiment \(stream.checksum is .* here, "
    ):
        ms.simulate(ms.fedogd(0.1), problem, other, steps=20, folder=folder)


def test_losses_that_are_not_convex_are_not_stored(tmp_path):
    problem = ms.problems.mlp(2, classes=2, hidden=(3,))
    run = ms.simulate(ms.fedogd(0.1), problem, stream(), steps=5, folder=tmp_path / "run")
    run.regret()
    assert not (tmp_path / "run" / comparator_cache.FOLDER).exists()


def test_a_saved_run_has_its_folder(tmp_path, solved):
    run = ms.simulate(ms.fedogd(0.1), PROBLEM, stream(), steps=20)
    run.save(tmp_path / "run")
    value = float(run.regret())
    assert float(loaded(tmp_path / "run").regret()) == value
    assert len(solved) == 1
