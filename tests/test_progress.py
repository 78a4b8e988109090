"""Progress without a terminal: lines in the log, with the time left."""

import logging

from mainstem import progress


def test_lines_are_logged_once_in_a_while(monkeypatch, caplog):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with (
        caplog.at_level(logging.INFO, "mainstem"),
        progress.bar("fedogd", 100, 20, None) as reached,
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
        progress.bar("fedogd", 100, 0, False) as reached,
    ):
        reached(50)
    assert not caplog.records
