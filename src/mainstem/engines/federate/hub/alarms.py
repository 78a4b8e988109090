"""The alarms of a hub: what somebody should look at now. The status, the metrics and the log show the same ones.

An alarm is a condition, which is looked at once a second, or something that has happened and is shown for a while.
docs/operations.md says for each what to do.
"""

import enum
import time
from typing import Any, NamedTuple

from mainstem.engines.federate import event_log

SHOWN = 600.0  # seconds for which something that has happened is shown


class Alarm(enum.StrEnum):
    """The kinds of alarms."""

    DISCONNECTED = "disconnected"  # the hub has no connection to the NATS server
    SERVER_FULL = "server_full"  # the NATS server stores nothing
    STORE_LOST = "store_lost"  # the NATS server, or this hub, was set back
    CERTIFICATE_ENDS = "certificate_ends"  # that of the NATS server, soon
    FILE_NOT_WRITTEN = "file_not_written"  # the hub's folder takes nothing
    HELD = "held"  # losses have grown: merges wait for an order
    STANDS_STILL = "stands_still"  # uploads wait, and nothing is merged
    CLIENT_LOST = "client_lost"  # it has not left, and is not heard
    CLIENT_QUARANTINED = "client_quarantined"  # its uploads were refused too often
    CLIENT_LEFT_OUT = "client_left_out"  # its changes are far larger than the others'
    CLIENT_TWICE = "client_twice"  # two processes are the same client
    CLIENT_VERSION = "client_version"  # its mainstem is not compatible with the hub's


class Raised(NamedTuple):
    """An alarm that is shown."""

    since: float  # seconds since 1970
    text: str
    until: float | None  # None: as long as its condition holds


class Alarms:
    """The alarms of one run that are shown at present."""

    def __init__(self, run: str):
        self._run = run
        self._raised: dict[tuple[Alarm, str], Raised] = {}

    def update(self, alarm: Alarm, holds: bool, text: str, client: str = "") -> None:
        """Raises or clears the alarm of a condition. Both are logged."""
        raised = (alarm, client) in self._raised
        if holds and not raised:
            self._raised[alarm, client] = Raised(time.time(), text, None)
            event_log.error(alarm, text, run=self._run, client=client)
        elif raised and not holds:
            self._clear(alarm, client)

    def happened(self, alarm: Alarm, text: str, client: str = "") -> None:
        """Raises the alarm of something that has happened. It is logged if it is not shown already."""
        now, known = time.time(), self._raised.get((alarm, client))
        if known is None:
            event_log.error(alarm, text, run=self._run, client=client)
        since = now if known is None else known.since
        self._raised[alarm, client] = Raised(since, text, now + SHOWN)

    def forget(self, client: str) -> None:
        """Clears the alarms of a client: an order has settled them."""
        for alarm, name in [each for each in self._raised if each[1] == client]:
            self._clear(alarm, name)

    def current(self) -> list[dict[str, Any]]:
        """The alarms that are shown, as JSON, the oldest first."""
        now = time.time()
        for (alarm, client), raised in list(self._raised.items()):
            if raised.until is not None and raised.until < now:
                self._clear(alarm, client)
        return [
            {"alarm": alarm, "client": client, "since": round(raised.since, 3), "text": raised.text}
            for (alarm, client), raised in sorted(self._raised.items(), key=lambda it: it[1].since)
        ]

    def _clear(self, alarm: Alarm, client: str) -> None:
        del self._raised[alarm, client]
        event_log.info("alarm_ends", f"no longer: {alarm}", run=self._run, client=client)
