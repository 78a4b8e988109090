"""The alarm of a hub: when losses have grown too far, the run goes back to the last good model, or holds."""

from typing import Any

from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.transport.tasks import log

RETURNS = 3  # to a good model without an order; then the run holds


class LossAlarm:
    """Follows the losses of a run from merge to merge."""

    def __init__(self, aggregator: Aggregator):
        self.holds = False  # whether merges wait for an order
        self.returns = 0  # to a good model, without an order
        self.good: int | None = None  # the last merge after which losses were small
        self._server: Any = None  # its state after that merge
        self._aggregator = aggregator
        self._document = aggregator.document

    def check(self) -> None:
        """Looks at the losses after a merge."""
        limit = self._document.alarm
        if not limit:
            return
        level = self._aggregator.watch.level
        if level <= 1:  # no larger than at the beginning
            self.good, self._server = self._aggregator.version, self._aggregator.server
        if level <= limit:
            return
        what = f"{self._document.rules.run}: losses are {level:.0f} times those of the beginning"
        back = "" if self.good is None else f"; --back goes to the model of merge {self.good}"
        returns = self._document.rules.on_alarm == "return" and self.returns < RETURNS
        if returns and self.good is not None:
            self.returns += 1
            self._aggregator.go_back(self._server)
            log.error("%s: it goes back to the model of merge %d", what, self.good)
        else:
            self.holds = True
            log.error("%s: it holds: mainstem status --resume goes on%s", what, back)

    def go_back(self) -> None:
        """Makes the last good model the newest."""
        self._aggregator.version += 1
        self._aggregator.go_back(self._server)

    def resume(self) -> None:
        """Goes on."""
        self.holds = False
        self._aggregator.watch.restart()
