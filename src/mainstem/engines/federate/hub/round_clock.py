"""When a merge is due: all expected uploads are in, or the deadline passes with a quorum."""

import asyncio
import time
from collections.abc import Callable

from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.presence import Presence


class RoundClock:
    """Waits for the end of a round; `waits()`: whether nothing is merged until an order comes."""

    def __init__(self, aggregator: Aggregator, presence: Presence, waits: Callable[[], bool]):
        self.first: float | None = None  # when the first upload came that waits
        self.changed = asyncio.Event()  # a merge may be due
        self._aggregator = aggregator
        self._presence = presence
        self._waits = waits
        self._counting = False  # whether the round waits for its deadline

    def arrived(self, accepted: bool) -> None:
        """An upload came. Also after a refusal a merge may be due: a quarantined client is not expected."""
        if accepted:
            self.first = self.first or time.monotonic()
        counts = accepted and not self._counting and self._time_left() is not None
        if counts or self.is_complete():
            self.changed.set()

    def left(self) -> None:
        """A client has left: it is no longer expected."""
        if self.is_complete():
            self.changed.set()

    async def is_due(self) -> bool:
        """Waits until all expected uploads are in, or the deadline passes with a quorum, or something changes."""
        if self.is_complete() and not self._waits():
            return True
        self.changed.clear()
        left = self._time_left()
        self._counting = left is not None
        if left is None:
            await self.changed.wait()
            return self.is_complete() and not self._waits()
        try:
            async with asyncio.timeout(left):
                await self.changed.wait()
        except TimeoutError:
            return self._aggregator.has_quorum() and not self._waits()
        return self.is_complete() and not self._waits()

    def is_complete(self) -> bool:
        """Whether all expected uploads are in. At the free pace, nothing is expected of clients that are lost."""
        if self._aggregator.document.lockstep:
            return self._aggregator.is_complete()
        return self._aggregator.is_complete(self._presence.absent(self._aggregator.indices))

    def _time_left(self) -> float | None:
        """Seconds until the deadline of the current round."""
        deadline = self._aggregator.document.rules.deadline
        if deadline is None or self.first is None or self._waits():
            return None
        if not self._aggregator.has_quorum():
            return None
        return max(0.0, self.first + deadline - time.monotonic())
