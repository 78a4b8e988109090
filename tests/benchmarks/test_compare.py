"""Rows: ratios per unit of work, shares of the limit, and sides that fail."""

import pytest

from benchmarks import command, compare, limits, machine
from benchmarks.compare import EXAMPLES, PER_STEP, Row, Setting, Side, ready

SETTING = Setting(rounds=3)


@pytest.fixture
def clock(monkeypatch):
    """Calls take as many seconds as they return, and the device is an H200."""
    monkeypatch.setattr(compare, "seconds", lambda action: action())
    monkeypatch.setattr(machine, "kind", lambda: "NVIDIA H200")


def broken():
    raise ValueError("no such shape\nmore")


def absent():
    import no_such_package  # noqa: F401


def row(*sides, unit=PER_STEP, **given):
    return Row("name", "A title", unit, 10, list(sides), **given)


@pytest.mark.usefixtures("clock")
def test_ratios_are_of_the_time_for_a_unit_of_work():
    sides = (
        Side("ours", ready(lambda: 2.0)),
        Side("half of it", ready(lambda: 2.0), work=5, ratio=3),
    )
    found = compare.compare(row(*sides, unit=EXAMPLES), SETTING)
    ours, other = found["sides"]
    assert (ours["value"], other["value"]) == (5.0, 2.5)
    assert (other["ratio"], other["asked"]) == (2.0, 3)
    assert "ratio" not in ours


@pytest.mark.usefixtures("clock")
def test_shares_are_of_the_limit():
    cost = limits.Cost(flops=67e12 * 0.05, bytes=0)
    found = compare.compare(row(Side("ours", ready(lambda: 2.0)), cost=cost), SETTING)
    assert found["limit"] == {"value": 50.0, "by": "float32 operations"}
    assert found["sides"][0]["share"] == pytest.approx(0.25)
    assert "25.0 % of the limit" in "\n".join(compare.lines(found))


@pytest.mark.usefixtures("clock")
def test_a_side_that_fails_is_reported_and_the_others_go_on():
    calls = iter([1.0, 1.0])
    sides = (
        Side("ours", ready(broken)),
        Side("later", ready(lambda: next(calls))),
        Side("absent", lambda: absent()),
        Side("fine", ready(lambda: 1.0)),
    )
    found = compare.compare(row(*sides), SETTING)
    text = "\n".join(compare.lines(found))
    assert "not measured, ValueError: no such shape" in text
    assert "not measured, not installed: no_such_package" in text
    ours, later, _, fine = found["sides"]
    assert "value" not in ours
    assert "StopIteration" in later["error"]
    assert fine["value"] == 100.0
    assert "ratio" not in fine


def test_the_file_keeps_rows_of_other_names_from_the_same_machine(tmp_path):
    path = tmp_path / "new" / "cpu.json"
    for machine_, name, value in (("a", "x", 1), ("a", "y", 2), ("a", "x", 3)):
        command.write(path, {"device": machine_}, {"row": name, "value": value})
    assert path.read_text().count('"row"') == 2
    assert '"value": 3' in path.read_text()
    command.write(path, {"device": "b"}, {"row": "z", "value": 4})
    assert path.read_text().count('"row"') == 1
