"""The clients of a hub, by their heartbeats: who is there, in which version and session, and how far."""

import contextlib
from collections.abc import Awaitable, Callable

from mainstem.engines.federate import event_log
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.alarms import Alarm, Alarms
from mainstem.engines.federate.hub.positions import Positions
from mainstem.engines.federate.hub.presence import Presence
from mainstem.engines.federate.protocol.comparisons import AloneLosses, CandidateLosses
from mainstem.engines.federate.protocol.heartbeats import GOODBYE, read_client, versions_in
from mainstem.engines.federate.protocol.messages import Reason, Refused
from mainstem.engines.federate.protocol.versions import incompatible


class Clients:
    """Reads heartbeats; `notify(client, refusal, session)` sends a refusal, `left()` is called after a goodbye."""

    def __init__(
        self,
        aggregator: Aggregator,
        alarms: Alarms,
        notify: Callable[[str, Refused, int], Awaitable[None]],
        left: Callable[[], None],
    ):
        self.presence = Presence()
        self.positions = Positions(lambda: aggregator.document.quorum, aggregator.next_sync)
        # The latest comparisons of each with a candidate, and with a model that it learns alone.
        self.compared: dict[str, CandidateLosses] = {}
        self.alone: dict[str, AloneLosses] = {}
        self._lost_before = 0  # the epoch for which a loss was reported
        self._aggregator = aggregator
        self._alarms = alarms
        self._notify = notify
        self._left = left

    async def on_heartbeat(self, client: str, data: bytes) -> None:
        """Reads a heartbeat of a client."""
        if data == GOODBYE:
            if self.presence.left(client):
                self._log("client_left", "has left", client)
            self._left()
            return
        why = incompatible(self._aggregator.document.versions, versions_in(data))
        if why is not None:
            self._alarms.happened(Alarm.CLIENT_VERSION, why, client)
            return
        with contextlib.suppress(ValueError, TypeError):
            position, session, compared, had, alone = read_client(data)
            if not self._admits(client, session):
                self.report_twice(client)
                refusal = Refused(Reason.SESSION, f"another process is client {client}")
                await self._notify(client, refusal, session)
                return
            if self.presence.came(client):
                self._log("client_joined", "has joined", client)
            self.positions.note(client, position)
            self._report_loss(client, position.epoch, had)
            if compared is not None:
                self.compared[client] = compared
            if alone is None:
                self.alone.pop(client, None)
            else:
                self.alone[client] = alone

    def _admits(self, client: str, session: int) -> bool:
        k, present = self._aggregator.indices[client], self.presence.is_present(client)
        if not self._aggregator.is_heard(k, session, present):
            return False
        self._aggregator.records.sessions[k] = session
        return True

    def _report_loss(self, client: str, epoch: int, had: int) -> None:
        """Raises the alarm of a run that was set back, if this client has seen a later merge than its epoch began
        with; once in an epoch."""
        now = self._aggregator.epoch
        if had and epoch == now != self._lost_before:
            self._lost_before = now
            text = f"was at merge {had} before this epoch, as client {client} knows: what came after the merge at "
            text += (
                "which the epoch began is lost, with the NATS server's store and the hub's folder"
            )
            self._alarms.happened(Alarm.STORE_LOST, text)

    def report_twice(self, client: str) -> None:
        """Raises the alarm of a client that is there twice."""
        rule = self._aggregator.document.rules.twice
        text = f"two processes are this client, and the {rule} is heard: is its folder a copy?"
        self._alarms.happened(Alarm.CLIENT_TWICE, text, client)

    def _log(self, event: str, text: str, client: str) -> None:
        event_log.info(event, text, run=self._aggregator.document.rules.run, client=client)
