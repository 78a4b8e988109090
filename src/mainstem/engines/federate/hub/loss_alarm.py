"""The alarm of a hub: when losses have grown too far, the run goes back to the last good model, or holds."""

from mainstem.engines.federate import event_log
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.checkpoints import Earlier
from mainstem.errors import MainstemError

RETURNS = 3  # to a good model without an order; then the run holds


class LossAlarm:
    """Follows the losses of a run from merge to merge."""

    def __init__(self, aggregator: Aggregator):
        self.holds = False  # whether merges wait for an order
        self.returns = 0  # to a good model, without an order
        self.good: int | None = None  # the last merge after which losses were small
        self._good: Earlier | None = None  # the state after that merge
        self._aggregator = aggregator

    def check(self) -> None:
        """Looks at the losses after a merge."""
        limit = self._aggregator.document.alarm
        if not limit:
            return
        level = self._aggregator.records.watch.level
        if level <= 1:  # no larger than at the beginning
            self.good = self._aggregator.version
            self._good = Earlier(self._aggregator.server, self._aggregator.document.clients)
        if level <= limit:
            return
        document = self._aggregator.document
        what = f"losses are {level:.0f} times those of the beginning"
        back = "" if self.good is None else f"; `back` goes to the model of merge {self.good}"
        returns = document.rules.on_alarm == "return" and self.returns < RETURNS
        if returns and self.good is not None:
            self.returns += 1
            self._aggregator.go_back(*self.last_good)
            text = f"{what}: it goes back to the model of merge {self.good}"
            event_log.error("losses_grew", text, run=document.rules.run)
        else:
            self.holds = True
            text = f"{what}: it holds: the order `resume` goes on{back}"
            event_log.error("losses_grew", text, run=document.rules.run)

    @property
    def last_good(self) -> Earlier:
        """The last state with which losses were small."""
        if self._good is None:
            raise MainstemError("there is no earlier model to go back to")
        return self._good

    def resume(self) -> None:
        """Goes on."""
        self.holds = False
        self._aggregator.records.watch.restart()
