"""The federated runs on a NATS server, as the live page shows them."""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mainstem.dashboard.points import charts, earlier, point
from mainstem.dashboard.source import ORDERS, Row
from mainstem.engines.federate.control import Observer, needs_somebody, send_order
from mainstem.engines.federate.hub.presence import HERE
from mainstem.engines.federate.protocol.timeline import Timeline, check, moment
from mainstem.engines.federate.security.credentials import check_owner
from mainstem.engines.federate.security.permissions import HUB
from mainstem.engines.federate.transport.connection import shown
from mainstem.errors import MainstemError

SECOND = 1.0
UNREADABLE = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)  # a status of another program
CANNOT = "cannot be read"
UNKNOWN = 0.0  # the revision of a status that cannot be read: before each that can be
COLUMNS = ("state", "samples", "uploads", "recent_loss", "staleness", "norm", "bytes_up", "strikes")


class Run:
    """What is known of one run. `orders`: whether the page may give it some."""

    def __init__(self, name: str, orders: bool):
        self._name, self._orders = name, orders
        self._timeline: Timeline | None = None  # read when a page asks for it
        self._answered = False  # whether the server has answered with some of it
        self.asked = False
        self.outdated = False  # whether the server's timeline may have more
        self.row: Row = {}
        self.now: dict[str, Any] = {}  # the newest status, as the page shows it
        self.readable = False
        self._moments: Sequence[Mapping[str, Any]] = []
        self._whole_from = 0.0  # the first moment of which a page has all that is known

    @property
    def ready(self) -> bool:
        """Whether the timeline was read."""
        return self._timeline is not None

    def begin(self, timeline: Timeline) -> None:
        """Takes the timeline so far; one that is empty does not replace another one, a part adds to it."""
        self._answered = self._answered or not timeline.empty
        self.outdated = self._answered and not timeline.whole  # else none may be read
        if self._timeline is not None and not timeline.whole:
            timeline.fill(self._timeline)
        if self._timeline is None or not timeline.empty:
            self._timeline, self._whole_from = timeline, math.inf

    def take(self, status: Mapping[str, Any]) -> None:
        """Takes the newest status."""
        try:
            now = moment(status)
            check(now)
            orders = _allowed(status) if self._orders else []
            self.row, self.now = _row(status), _shown(status) | {"orders": orders}
            self.readable = True
        except UNREADABLE:
            self._refuse()
            return
        if self._timeline is not None:
            self._timeline.add(now)
            self._moments = self._timeline.moments(now["time"])
            self._whole_from = min(self._whole_from, now["time"])

    def _refuse(self) -> None:
        """Shows that the newest status cannot be read."""
        if self.now and not self.readable:
            return
        facts = [["state", CANNOT], ["why", "its status is of another version"]]
        row = {"run": self._name, "state": CANNOT, "needs_somebody": True, "at": "", "sites": ""}
        self.row, self.readable = row, False
        self.now = {"revision": UNKNOWN, "facts": facts, "alarms": [], "orders": []}
        self._whole_from = math.inf  # what is read again is shown as a whole

    def whole(self, sites: Sequence[str]) -> dict[str, Any]:
        """The charts of its timeline, and what it does now."""
        return {"charts": charts(self._moments, sites), **self.now}

    def latest(self, sites: Sequence[str], seen: float) -> dict[str, Any] | None:
        """The newest values of the charts; all of them for a page that has not seen the timeline."""
        if not self.readable and seen == self.now["revision"]:
            return None
        if not self.readable or seen < self._whole_from:
            return self.whole(sites)
        last = len(self._moments) - 1
        values = point(self._moments[last], earlier(self._moments, last), sites)
        return {"point": {"time": self._moments[last]["time"], "values": values}, **self.now}


class Federation:
    """Follows the runs on a server, or one of them."""

    def __init__(self, url: str, credentials: Path | None, run: str | None):
        self.about = f"NATS server {shown(url)}"
        self._url, self._credentials, self._run = url, credentials, run
        self._runs: dict[str, Run] = {}
        self.problem = ""  # why the server is not read at present
        self._orders = False
        if credentials is not None:
            with contextlib.suppress(MainstemError):
                check_owner(credentials, HUB)
                self._orders = True

    async def check(self) -> None:
        """Raises an error if the server refuses the credential, or has no such run."""
        async with await Observer.open(self._url, self._credentials, self._run) as observer:
            await observer.stored()

    async def follow(self, changed: Callable[[], None]) -> None:
        """Reads the statuses every second, and calls `changed` after each."""
        observer: Observer | None = None
        try:
            while True:
                began = time.monotonic()
                try:
                    if observer is None:
                        observer = await Observer.open(self._url, self._credentials, self._run)
                    await self._read(observer)
                    self.problem = ""
                except MainstemError as error:
                    self.problem = str(error)
                    for run in self._runs.values():
                        run.outdated = True  # what happens meanwhile is on the server alone
                changed()
                await asyncio.sleep(max(0.0, SECOND - (time.monotonic() - began)))
        finally:
            if observer is not None:
                await observer.close()

    async def _read(self, observer: Observer) -> None:
        found = {str(status["run"]): status for status in await observer.statuses()}
        self._runs = {name: self._runs.get(name) or Run(name, self._orders) for name in found}
        for name, run in self._runs.items():
            if run.asked and (run.outdated or not run.ready):
                run.begin(await observer.timeline(name))
            run.take(found[name])

    # --- what the page shows -----------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """The runs, each in a line."""
        return [run.row for _, run in sorted(self._runs.items()) if run.row]

    def whole(self, name: str, sites: Sequence[str]) -> dict[str, Any] | None:
        """Everything of a run; None if it is not there, or its timeline was not read yet."""
        run = self._asked(name)
        return None if run is None else run.whole(sites)

    def latest(self, name: str, sites: Sequence[str], seen: float) -> dict[str, Any] | None:
        """What is new of a run since a second ago."""
        run = self._asked(name)
        return None if run is None else run.latest(sites, seen)

    def _asked(self, name: str) -> Run | None:
        """A run that a page asks for, after its timeline was read."""
        run = self._runs.get(name)
        if run is None:
            return None
        run.asked = True
        return run if run.ready else None

    async def order(self, run: str, name: str, of: str) -> None:
        """Sends an order to the hub of a run. Raises MainstemError if it is refused."""
        if not self._orders:
            raise MainstemError(
                "orders need the hub's credential: start the page with --credentials"
            )
        arguments: dict[str, Any] = {}
        if name == "back":
            arguments["merge"] = int(of)
        elif name == "forgive":
            arguments["client"] = of
        elif name == "remove":
            name, arguments = "change", {"set": [], "add": [], "remove": [of], "rename": {}}
        await send_order(self._url, run, name, self._credentials, **arguments)


def _row(status: Mapping[str, Any]) -> Row:
    return {
        "run": str(status["run"]),
        "state": str(status["state"]),
        "needs_somebody": needs_somebody(status),
        "at": f"merge {status['version']:,}",
        "sites": _here(status),
    }


def _shown(status: Mapping[str, Any]) -> dict[str, Any]:
    """A status as the page shows it: of texts and numbers, whatever it contains."""
    clients = status["clients"]
    refused = [sum(each["refused"].values()) for each in clients.values()]
    columns: dict[str, list[Any]] = {
        name: [_cell(name, each[name]) for each in clients.values()] for name in COLUMNS
    }
    gains = [(each.get("alone") or {}).get("gain") for each in clients.values()]
    if any(gain is not None for gain in gains):
        columns["gain"] = [None if gain is None else _cell("gain", gain) for gain in gains]
    facts = {
        "state": str(status["state"]),
        "merge": f"{status['version']:,}, at step {status['step']:,}",
        "merges a second": f"{status['rounds_per_second']:g}",
        "sites here": _here(status),
        "waiting for the next merge": f"{status['waiting']['clients']} of {status['waiting']['quorum']} sites",
        "pace": str(status["pace"]),
        "revision of the rules": str(status["revision"]),
        "hub last heard": f"{status['age']:.0f} s ago",
    }
    return {
        "revision": status["time"],
        "facts": [[key, value] for key, value in facts.items()],
        "alarms": [
            f"{each['alarm']}: {each['client'] + ': ' if each['client'] else ''}{each['text']}"
            for each in status["alarms"]
        ],
        "sites": {"site": list(clients), **columns, "refused": refused},
        "merges": [_merge(each) for each in status["merges"]],
    }


def _merge(merge: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: float(merge[name]) for name in ("version", "step", "time", "uploads")}
    stopped = list(merge["stopped"])
    if not all(isinstance(name, str) for name in stopped):
        raise TypeError("stopped has something else than names")
    waited, deadline = float(merge["waited"]), bool(merge["deadline"])
    return {**numbers, "waited": waited, "deadline": deadline, "stopped": stopped}


def _cell(column: str, value: Any) -> str | float:
    """A cell of the table of sites."""
    if not isinstance(value, str if column == "state" else int | float):
        raise TypeError(f"{column}: {type(value).__name__}")
    return value


def _allowed(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The orders that make sense now."""
    if status["state"] in ("finished", "stopped"):
        return []
    waits = status["state"] in ("paused", "held")
    kept = [int(each) for each in status["checkpoints"]]
    quarantined = [name for name, each in status["clients"].items() if each["strikes"]]
    choices = {"back": kept, "forgive": quarantined, "remove": list(status["clients"])}
    hidden = {"pause" if waits else "resume"} | {name for name in choices if not choices[name]}
    return [
        {"order": name, **about, "of": choices.get(name)}
        for name, about in ORDERS.items()
        if name not in hidden
    ]


def _here(status: Mapping[str, Any]) -> str:
    states = [each["state"] for each in status["clients"].values()]
    return f"{sum(state in HERE for state in states)} of {len(states)}"
