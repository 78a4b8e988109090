"""Rows of a benchmark: sides that do the same work, measured in turn, and the ratios of their medians.

The machine may be shared and noisy, so each round measures every side once, turn by turn, and the medians of the
rounds are compared. A side that fails is reported with its error; the others go on.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

from benchmarks import limits, machine

Action = Callable[[], object]
Result = dict[str, Any]  # a row in the JSON file


class Unit(NamedTuple):
    """What a row reports: the time of a unit of work times `scale`, or without `scale` the units per second."""

    name: str
    scale: float | None = None

    def of(self, seconds: float) -> float:
        """The value for the seconds of one unit of work."""
        return 1 / seconds if self.scale is None else self.scale * seconds


PER_STEP = Unit("ms/step", 1e3)
PER_ROUND = Unit("ms/round", 1e3)
PER_CLIENT_STEP = Unit("ns/client-step", 1e9)
CLIENT_STEPS = Unit("client-steps/s")
EXAMPLES = Unit("examples/s")
MEMORY = Unit("MiB", 1.0)


class Setting(NamedTuple):
    """How a benchmark is run."""

    small: bool = False  # tiny sizes, to try the code
    rounds: int = 5
    patience: float = 30.0  # seconds after which a row begins no further round


class Side(NamedTuple):
    """One of the programs that do a row's work; the row's first side is mainstem."""

    name: str
    prepare: Callable[[], Action]  # its imports and data are not timed
    work: float | None = None  # units of work of a call, where they are not those of the row
    ratio: float | None = None  # how many times longer than mainstem it should take, at least


class Row(NamedTuple):
    """Sides that do the same work, the cost of one unit of it, and the goal for mainstem."""

    name: str
    title: str
    unit: Unit
    work: float  # units of work in a call
    sides: list[Side]
    cost: limits.Cost | None = None
    goal: float | None = None


def ready(action: Action) -> Callable[[], Action]:
    """For a side that has nothing to prepare."""
    return lambda: action


def seconds(action: Action) -> float:
    """The wall time of a call."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def compare(row: Row, setting: Setting) -> Result:
    """Measures the row's sides, and returns what was found."""
    actions: dict[str, Action] = {}
    found: dict[str, Result] = {side.name: {"name": side.name} for side in row.sides}
    times: dict[str, list[float]] = {}
    for side in row.sides:
        with Failures(found[side.name]):
            action = side.prepare()
            found[side.name]["first"] = seconds(action)
            actions[side.name], times[side.name] = action, []
    begin = time.perf_counter()
    for _ in range(setting.rounds):
        for name in list(actions):
            with Failures(found[name]) as failures:
                times[name].append(seconds(actions[name]))
            if failures.any:
                del actions[name]
        if time.perf_counter() - begin > setting.patience:
            break
    limit = limits.limit(row.cost, machine.kind()) if row.cost else None
    medians = {name: median(each) for name, each in times.items() if name in actions}
    each_unit = {
        side.name: medians.get(side.name, 0.0) / (side.work or row.work) for side in row.sides
    }
    ours = each_unit[row.sides[0].name]
    for side in row.sides:
        if side.name not in actions:
            continue
        mine, entry = each_unit[side.name], found[side.name]
        entry["first"] -= medians[side.name]  # what the first call takes longer: mostly compilation
        entry |= {"value": row.unit.of(mine), "rounds": times[side.name]}
        if side is not row.sides[0] and ours:
            entry["ratio"] = mine / ours
        if side.ratio is not None:
            entry["asked"] = side.ratio
        if limit is not None:
            entry["share"] = limit.seconds / mine
    result = {
        "row": row.name,
        "title": row.title,
        "unit": row.unit.name,
        "sides": list(found.values()),
    }
    if row.goal is not None:
        result["goal"] = row.goal
    if row.cost is not None:
        result["cost"] = row.cost._asdict()
    if limit is not None:
        result["limit"] = {"value": row.unit.of(limit.seconds), "by": limit.by}
    return result


class Failures:
    """Records the error of a block in an entry, in place of ending the run."""

    def __init__(self, entry: Result) -> None:
        self.entry, self.any = entry, False

    def __enter__(self) -> "Failures":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> bool:
        if not isinstance(error, Exception):
            return False
        text = str(error).strip().splitlines() or [""]
        missing = isinstance(error, ModuleNotFoundError)
        self.entry["error"] = (
            f"not installed: {error.name}" if missing else f"{kind.__name__}: {text[0]}"
        )
        self.any = True
        return True


def measured(name: str, title: str, unit: Unit, values: dict[str, Callable[[], float]]) -> Result:
    """A row of values that are no times, such as memory; each with the ratio to the first."""
    entries: list[Result] = []
    for label, value in values.items():
        entry: Result = {"name": label}
        with Failures(entry):
            entry["value"] = value()
            if entries and "value" in entries[0]:
                entry["ratio"] = entry["value"] / entries[0]["value"]
        entries.append(entry)
    return {"row": name, "title": title, "unit": unit.name, "sides": entries}


def lines(result: Result) -> list[str]:
    """The row as text for a terminal."""
    goal = result.get("goal")
    text = [
        "",
        result["title"] + ("" if goal is None else f" (goal: {shown(goal)} {result['unit']})"),
    ]
    if limit := result.get("limit"):
        text.append(
            f"  {'limit, by ' + limit['by']:44}{shown(limit['value']):>10} {result['unit']}"
        )
    for entry in result["sides"]:
        text.append("  " + _line(entry, result["unit"]))
    return text


def _line(entry: Result, unit: str) -> str:
    if "error" in entry:
        return f"{entry['name']:44}not measured, {entry['error']}"
    text = f"{entry['name']:44}{shown(entry['value']):>10} {unit}"
    if "ratio" in entry:
        text += f"   ratio {entry['ratio']:6.2f}"
    if "asked" in entry:
        text += f"   (asked: at least {entry['asked']:g})"
    if "share" in entry:
        text += f"   {100 * entry['share']:.1f} % of the limit"
    if "ratio" not in entry and entry.get("first", 0.0) > 0:
        text += f"   (compiled in {entry['first']:.1f} s)"
    return text


def shown(value: float) -> str:
    """Three digits, and a letter for thousands, millions and billions.

    >>> shown(0.01234), shown(41.56), shown(2.5e9)
    ('0.0123', '41.6', '2.50 G')
    """
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= size:
            return f"{value / (1e3 if letter == ' k' else size):#.3g}".rstrip(".") + letter
    return f"{value:#.3g}".rstrip(".") if value < 1000 else f"{value:.0f}"
