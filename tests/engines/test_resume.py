"""Resuming: a stopped run continues where it was: killed processes, interrupts, and folders of other runs."""

import contextlib
import importlib
import json
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import mainstem as ms
from mainstem.engines.simulate import engine
from mainstem.engines.simulate.devices import Layout
from mainstem.run import folder as folders
from tests.engines import killed


def _start(folder):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.engines.killed", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextlib.contextmanager
def _suspended(folder, parts):
    """A process that runs in `folder`, suspended once it has written `parts` parts of the trace; then killed."""
    process = _start(folder)
    try:
        deadline = time.monotonic() + 120
        while len(list(folder.glob("trace/*.parquet"))) < parts:
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)
        assert not (folder / "run.json").exists(), "it ended before it could be killed"
        yield
    finally:
        process.kill()
        assert process.wait() == -signal.SIGKILL


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    """A folder whose process was killed."""
    folder = tmp_path_factory.mktemp("killed") / "run"
    with _suspended(folder, 3):
        pass
    return folder


def _check_nothing_is_lost(folder, unharmed):
    """An unfinished run that is resumed equals one that was never stopped."""
    with pytest.raises(ms.MainstemError, match="was not finished: run it again to resume"):
        ms.load(folder)
    together = [_start(each) for each in (folder, unharmed)]
    assert [each.wait() for each in together] == [0, 0]
    resumed, whole = ms.load(folder), ms.load(unharmed)
    for name in whole.columns:
        assert np.array_equal(whole.trace[name], resumed.trace[name]), name
    for name, leaf in whole.model.items():
        assert np.array_equal(leaf, resumed.model[name])
    averages = [ms.measure.average_model(run)["weights"] for run in (whole, resumed)]
    assert np.allclose(*averages, atol=1e-12)


def test_sigkill_loses_nothing(unfinished, tmp_path):
    folder = shutil.copytree(unfinished, tmp_path / "killed")
    _check_nothing_is_lost(folder, tmp_path / "whole")


@pytest.mark.slow
def test_two_kills_lose_nothing(tmp_path):
    for parts in (2, 6):
        with _suspended(tmp_path / "killed", parts):
            pass
    _check_nothing_is_lost(tmp_path / "killed", tmp_path / "whole")


def test_an_interrupt_leaves_a_run_that_can_be_resumed(tmp_path, monkeypatch):
    problem, stream = ms.problems.softmax(64, 10), ms.streams.digits(clients=10)
    algorithm = ms.fedomd(0.1, sync=ms.parts.every(3))
    settings = {"steps": 200, "checkpoint": 0.0, "chunk": 30, "measure": ()}
    put = Layout.put
    calls = []

    def interrupted(self, *arguments, **named):
        calls.append(named)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return put(self, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Layout, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ms.simulate(algorithm, problem, stream, folder=tmp_path / "run", **settings)
    resumed = ms.simulate(algorithm, problem, stream, folder=tmp_path / "run", **settings)
    whole = ms.simulate(algorithm, problem, stream, **settings)
    assert np.array_equal(whole.loss, resumed.loss)


def test_a_folder_of_another_experiment_is_left_alone(tmp_path):
    problem, stream = ms.problems.softmax(64, 10), ms.streams.digits(clients=10)
    folder = tmp_path / "run"
    ms.simulate(ms.fedogd(0.1), problem, stream, steps=5, folder=folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(ms.MainstemError, match="holds a finished run"):
        ms.simulate(ms.fedogd(0.1), problem, stream, steps=5).save(folder)
    (folder / "run.json").unlink()
    with pytest.raises(ms.MainstemError, match="holds another experiment"):
        ms.simulate(ms.fedogd(0.2), problem, stream, steps=5, folder=folder)
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "thesis.tex").write_text("do not touch")
    with pytest.raises(ms.MainstemError, match="holds no run"):
        ms.simulate(ms.fedogd(0.1), problem, stream, steps=5, folder=strange)
    assert [path.name for path in strange.iterdir()] == ["thesis.tex"]
    del before[folder / "run.json"]
    assert all(path.read_bytes() == data for path, data in before.items())


def test_a_finished_run_is_returned(tmp_path, monkeypatch):
    problem, stream = ms.problems.softmax(64, 10), ms.streams.digits(clients=10)

    def run():
        return ms.simulate(ms.fedogd("auto"), problem, stream, steps=5, folder=tmp_path / "run")

    first = run()
    monkeypatch.setattr(engine, "run_chunks", None)
    again = run()
    assert np.array_equal(again.loss, first.loss)
    assert again.stream is stream
    assert again.algorithm == first.algorithm


def test_a_corrupted_checkpoint_is_refused(unfinished, tmp_path):
    folder = shutil.copytree(unfinished, tmp_path / "run")
    path = folder / "checkpoint.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ms.MainstemError, match=r"checkpoint\.npz cannot be read"):
        killed.run(folder)


def test_a_folder_is_for_one_process_at_a_time(tmp_path):
    with (
        _suspended(tmp_path / "run", 1),
        pytest.raises(ms.MainstemError, match="another process is running it"),
    ):
        killed.run(tmp_path / "run")


def test_a_missing_part_of_the_trace_is_noticed_before_the_run_goes_on(unfinished, tmp_path):
    folder = shutil.copytree(unfinished, tmp_path / "run")
    (folder / "trace" / "000001.parquet").unlink()
    with pytest.raises(ms.MainstemError, match="part 1 of the trace is missing"):
        killed.run(folder)


SMALL = {"steps": 60, "checkpoint": 0.0, "chunk": 20, "measure": ()}


def _small(folder, algorithm=None, problem=None):
    problem = problem or ms.problems.softmax(64, 10)
    stream = ms.streams.digits(clients=10)
    return ms.simulate(algorithm or ms.fedogd(0.1), problem, stream, folder=folder, **SMALL)


@pytest.mark.parametrize("function", ["_join", "npz"])
def test_a_run_that_dies_while_it_is_being_finished_can_be_finished(
    tmp_path, monkeypatch, function
):
    """Killed, or out of disk, after the last checkpoint and before the end."""
    whole = _small(tmp_path / "whole")
    with monkeypatch.context() as patch:
        real = getattr(folders, function)

        def full(*given):
            if function == "_join" or "server" in given[0]:
                raise OSError(28, "No space left on device")
            return real(*given)

        patch.setattr(folders, function, full)
        with pytest.raises(OSError, match="No space left"):
            _small(tmp_path / "run")
    resumed = _small(tmp_path / "run")
    assert np.array_equal(resumed.loss, whole.loss)
    assert np.array_equal(ms.load(tmp_path / "run").loss, whole.loss)


def _linear(scale):
    """Problems whose code differs in what it captures, or in what it does."""

    def loss(score, y):
        return scale * (score - y) ** 2

    return ms.problems.custom(
        lambda key: {"w": np.zeros(64, np.float32)}, lambda params, x: x @ params["w"], loss
    )


def test_another_lambda_is_another_experiment(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(folders, "_join", _killed)
        with pytest.raises(KeyboardInterrupt):
            _small(tmp_path / "run", problem=_linear(0.5))
    with pytest.raises(ms.MainstemError, match="holds another experiment"):
        _small(tmp_path / "run", problem=_linear(0.25))
    assert _small(tmp_path / "run", problem=_linear(0.5)).summary.steps == 60


def _killed(*_):
    raise KeyboardInterrupt


def test_code_that_nothing_can_tell_from_other_code_is_refused_for_a_folder(tmp_path):
    opaque = object()
    problem = ms.problems.custom(
        lambda key: {"w": np.zeros(64, np.float32)},
        lambda params, x: x @ params["w"] + 0 * id(opaque),
        lambda score, y: (score - y) ** 2,
    )
    with pytest.raises(ms.MainstemError, match="has no name that identifies it"):
        _small(tmp_path / "run", problem=problem)
    assert not (tmp_path / "run").exists()


def test_where_a_run_was_begun_is_not_forgotten_when_it_is_resumed(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(folders, "_join", _killed)
        with pytest.raises(KeyboardInterrupt):
            _small(tmp_path / "run")
    begun = json.loads((tmp_path / "run" / "environment.json").read_text())
    elsewhere = begun | {"python": "3.99"}
    with monkeypatch.context() as patch:
        patch.setattr(folders, "environment", lambda: elsewhere)
        _small(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "environment.json").read_text()) == begun | {
        "resumed": [elsewhere]
    }


def test_a_folder_that_another_process_holds_is_not_touched(tmp_path):
    """It is locked before anything is written to it."""
    folder = tmp_path / "run"
    folder.mkdir()
    held = folders.lock(folder)
    with pytest.raises(ms.MainstemError, match="another process is running it"):
        _small(folder)
    assert [path.name for path in folder.iterdir()] == ["lock"]
    held.release()


def test_an_edited_class_is_another_experiment(tmp_path, monkeypatch):
    """The folder of a run is not continued with a problem whose author has changed an equation since."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def problem(loss):
        (tmp_path / "own_problem.py").write_text(
            "from mainstem import extend as mx\n"
            "@mx.value\n"
            "class own_problem(mx.Problem):\n"
            "    domain = mx.parts.everything()\n"
            "    def init(self, key): return mx.jnp.zeros(64)\n"
            "    def decide(self, params, shown, at): return params @ shown\n"
            "    def reveal(self, decision, sample): return sample\n"
            f"    def loss(self, params, seen): return {loss}\n"
        )
        sys.modules.pop("own_problem", None)
        importlib.invalidate_caches()
        return importlib.import_module("own_problem").own_problem()

    squared = "(params @ seen.shown - seen.hidden) ** 2"
    run = _small(tmp_path / "run", problem=problem(squared))
    assert np.array_equal(_small(tmp_path / "run", problem=problem(squared)).loss, run.loss)
    with pytest.raises(ms.MainstemError, match="holds another experiment"):
        _small(tmp_path / "run", problem=problem(f"2 * {squared}"))
