"""The federated runs on a NATS server, as the live page shows them."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mainstem.dashboard.points import charts, earlier, point
from mainstem.dashboard.source import ORDERS, Row
from mainstem.engines.federate.control import Observer, needs_somebody, send_order
from mainstem.engines.federate.hub.presence import HERE
from mainstem.engines.federate.protocol.timeline import Timeline, moment
from mainstem.engines.federate.security.credentials import check_owner
from mainstem.engines.federate.security.permissions import HUB
from mainstem.engines.federate.transport.connection import shown
from mainstem.errors import MainstemError

SECOND = 1.0
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)  # a status of another program
COLUMNS = ("state", "samples", "uploads", "recent_loss", "staleness", "norm", "bytes_up", "strikes")


class Run:
    """What is known of one run."""

    def __init__(self) -> None:
        self._timeline: Timeline | None = None  # read when a page asks for it
        self.asked = False
        self.status: Mapping[str, Any] = {}
        self._moments: Sequence[Mapping[str, Any]] = []

    @property
    def ready(self) -> bool:
        """Whether the timeline was read."""
        return self._timeline is not None

    def begin(self, timeline: Timeline) -> None:
        """Takes the timeline so far."""
        self._timeline = timeline

    def take(self, status: Mapping[str, Any]) -> None:
        """Takes the newest status."""
        now = moment(status)  # also shows whether it can be read
        if self._timeline is not None:
            self._timeline.add(now)
            self._moments = self._timeline.moments(now["time"])
        self.status = status

    def charts(self, sites: Sequence[str]) -> list[dict[str, Any]]:
        """The charts of its timeline."""
        return charts(self._moments, sites)

    def point(self, sites: Sequence[str]) -> dict[str, Any]:
        """The newest values of the charts."""
        last = len(self._moments) - 1
        values = point(self._moments[last], earlier(self._moments, last), sites)
        return {"time": self._moments[last]["time"], "values": values}


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
                changed()
                await asyncio.sleep(max(0.0, SECOND - (time.monotonic() - began)))
        finally:
            if observer is not None:
                await observer.close()

    async def _read(self, observer: Observer) -> None:
        found = await observer.statuses()
        for status in found:
            with contextlib.suppress(*UNREADABLE):
                name = str(status["run"])
                run = self._runs.setdefault(name, Run())
                if run.asked and not run.ready:
                    run.begin(await observer.timeline(name))
                run.take(status)
        there = {status.get("run") for status in found}
        self._runs = {name: run for name, run in self._runs.items() if name in there and run.status}

    # --- what the page shows -----------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """The runs, each in a line."""
        return [
            {
                "run": name,
                "state": run.status["state"],
                "needs_somebody": needs_somebody(run.status),
                "at": f"merge {run.status['version']:,}",
                "sites": _here(run.status),
            }
            for name, run in sorted(self._runs.items())
        ]

    def whole(self, name: str, sites: Sequence[str]) -> dict[str, Any] | None:
        """Everything of a run; None if it is not there, or its timeline was not read yet."""
        run = self._runs.get(name)
        if run is None:
            return None
        run.asked = True
        if not run.ready:
            return None
        return {"charts": run.charts(sites), **self._now(run)}

    def latest(self, name: str, sites: Sequence[str], seen: float) -> dict[str, Any] | None:
        """What is new of a run since a second ago."""
        run = self._runs.get(name)
        return None if run is None else {"point": run.point(sites), **self._now(run)}

    def _now(self, run: Run) -> dict[str, Any]:
        status = run.status
        clients = status["clients"]
        refused = [sum(each["refused"].values()) for each in clients.values()]
        columns = {name: [each[name] for each in clients.values()] for name in COLUMNS}
        facts = {
            "state": status["state"],
            "merge": f"{status['version']:,}, at step {status['step']:,}",
            "merges a second": f"{status['rounds_per_second']:g}",
            "sites here": _here(status),
            "waiting for the next merge": f"{status['waiting']['clients']} of {status['waiting']['quorum']} sites",
            "pace": status["pace"],
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
            "merges": status["merges"],
            "orders": self._allowed(run),
        }

    def _allowed(self, run: Run) -> list[dict[str, Any]]:
        """The orders that make sense now."""
        if not self._orders or run.status["state"] in ("finished", "stopped"):
            return []
        waits = run.status["state"] in ("paused", "held")
        kept = run.status["checkpoints"]
        quarantined = [n for n, each in run.status["clients"].items() if each["strikes"]]
        choices = {"back": kept, "forgive": quarantined, "remove": list(run.status["clients"])}
        hidden = {"pause" if waits else "resume"} | {name for name in choices if not choices[name]}
        return [
            {"order": name, **about, "of": choices.get(name)}
            for name, about in ORDERS.items()
            if name not in hidden
        ]

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


def _here(status: Mapping[str, Any]) -> str:
    states = [each["state"] for each in status["clients"].values()]
    return f"{sum(state in HERE for state in states)} of {len(states)}"
