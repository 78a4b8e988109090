"""Progress without a terminal: lines in the log, with the time left; an interrupt is never lost."""

import contextlib
import logging
import signal

import pytest

import mainstem as ms
from mainstem import progress


def test_lines_are_logged_once_in_a_while(monkeypatch, caplog):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with (
        caplog.at_level(logging.INFO, "mainstem"),
        progress.bar(lambda: "fedogd", 100, 20, None) as reached,
    ):
        for step in (30, 40, 60, 80, 100):
            clock[0] += 20
            reached(step)
    assert [each.message for each in caplog.records] == [
        "fedogd: step 40 of 100, about 120 s left",
        "fedogd: step 80 of 100, about 27 s left",
    ]


def test_nothing_is_logged_if_it_is_not_wanted(monkeypatch, caplog):
    monkeypatch.setattr(progress, "LOGGED", -1.0)
    with (
        caplog.at_level(logging.INFO, "mainstem"),
        progress.bar(lambda: "fedogd", 100, 0, False) as reached,
    ):
        reached(50)
    assert not caplog.records


@pytest.fixture
def own_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    progress.interrupted.clear()


@pytest.mark.parametrize("shown", [True, False, None])
def test_an_interrupt_that_python_drops_ends_the_run(own_handler, shown, tmp_path):
    progress.keep_interrupts()
    with contextlib.suppress(KeyboardInterrupt):  # as in a destructor
        signal.raise_signal(signal.SIGINT)
    given = ms.fedogd(0.1), ms.problems.softmax(64, 10), ms.streams.digits(clients=5)
    settings = {"steps": 20, "chunk": 5, "checkpoint": 0.0, "folder": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        ms.simulate(*given, **settings, progress=shown)
    progress.interrupted.clear()
    assert (tmp_path / "run" / "checkpoint.npz").exists()
    assert ms.simulate(*given, **settings).summary.steps == 20  # it resumes


def test_an_ignored_interrupt_stays_ignored(own_handler):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    progress.keep_interrupts()
    signal.raise_signal(signal.SIGINT)
    assert not progress.interrupted.is_set()
