"""Checks a hub once a second, and raises the alarms of the conditions that hold."""

import time

from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.alarms import Alarm, Alarms
from mainstem.engines.federate.hub.presence import Presence

LAST_DAYS = 30  # of a certificate
STANDS_STILL = 60.0  # seconds for which an upload may wait, or ten deadlines if that is longer
CLIENT_TEXTS = {
    Alarm.CLIENT_LOST: "has not left, and is not heard",
    Alarm.CLIENT_QUARANTINED: "was refused too often: its uploads are not read until an order forgives it",
    Alarm.CLIENT_LEFT_OUT: "is left out: its changes are far larger than the others', or no others are known",
}


class Health:
    """The conditions of one run."""

    def __init__(self, aggregator: Aggregator, presence: Presence, alarms: Alarms):
        self._aggregator = aggregator
        self._presence = presence
        self._alarms = alarms

    def check_server(self, connected: bool, stores: bool) -> None:
        """The connection, and the NATS server's disk."""
        text = "the connection to the NATS server is lost: merges wait until it is back"
        self._alarms.update(Alarm.DISCONNECTED, not connected, text)
        text = "the NATS server stores nothing: is its disk full?"
        self._alarms.update(Alarm.SERVER_FULL, not stores, text)

    def check_certificate(self, days: float | None) -> None:
        """The certificate of the NATS server, that ends in so many days."""
        ends = days is not None and days < LAST_DAYS
        text = (
            f"the NATS server's certificate ends in {days or 0:.0f} days: mainstem secure --renew"
        )
        self._alarms.update(Alarm.CERTIFICATE_ENDS, ends, text)

    def check_folder(self, failed: OSError | None) -> None:
        """The hub's own files."""
        why = "" if failed is None else failed.strerror or str(failed)
        text = f"the hub's folder takes nothing: {why}: the run goes on without"
        self._alarms.update(Alarm.FILE_NOT_WRITTEN, failed is not None, text)

    def check_rounds(self, first: float | None, held: bool, waits: bool) -> None:
        """The rounds; `first`: when the first upload came that waits."""
        text = "losses have grown too far: nothing is merged until an order comes"
        self._alarms.update(Alarm.HELD, held, text)
        longest = max(STANDS_STILL, 10 * (self._aggregator.document.rules.deadline or 0.0))
        late = first is not None and not waits and time.monotonic() - first > longest
        text = f"an upload has waited for more than {longest:.0f} seconds: too few clients are there to merge it"
        self._alarms.update(Alarm.STANDS_STILL, late, text)

    def check_clients(self, left_out: set[str]) -> None:
        """The clients; `left_out`: those whose messages the guard leaves out."""
        for name, k in self._aggregator.indices.items():
            holds = {
                Alarm.CLIENT_LOST: self._presence.state(name) == "lost",
                Alarm.CLIENT_QUARANTINED: k in self._aggregator.records.quarantined,
                Alarm.CLIENT_LEFT_OUT: name in left_out,
            }
            for alarm, text in CLIENT_TEXTS.items():
                self._alarms.update(alarm, holds[alarm], text, name)
