"""What the live page shows: runs from a source, which is a NATS server or a folder."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

Row = dict[str, Any]  # of the table of runs
ORDERS: dict[str, dict[str, str]] = {
    "pause": {"title": "Pause", "text": "Nothing is merged until `resume`. Sites go on learning."},
    "resume": {"title": "Resume", "text": "Merging goes on."},
    "candidate": {
        "title": "Compare with this model",
        "text": "The sites compare what they learn from now on with the model of this moment.",
    },
    "snapshot": {
        "title": "Write the model",
        "text": "The hub writes the current model to its folder.",
    },
    "back": {
        "title": "Go back to merge",
        "text": "The run goes on from the model of that merge. What was learnt since is lost to the model.",
    },
    "forgive": {"title": "Forgive site", "text": "Its quarantine and its strikes end."},
    "remove": {
        "title": "Remove site",
        "text": "Its uploads are no longer read, from the next merge on.",
    },
    "finish": {
        "title": "Finish",
        "text": "The run ends for good: its hub writes the model and ends.",
    },
}  # what an operator may order on the page, and what it does


class Source(Protocol):
    """Where runs are followed."""

    about: str  # what it is
    problem: str  # why it cannot be read at present; empty if it can

    async def follow(self, changed: Callable[[], None]) -> None:
        """Looks at the runs again and again, until it is cancelled; calls `changed` after each look."""

    def rows(self) -> list[Row]:
        """The runs, each in a line."""

    def whole(self, name: str, sites: Sequence[str]) -> dict[str, Any] | None:
        """Everything of a run, with lines for some sites; None if there is no such run. Its `revision`
        grows; 0: nothing can be read."""

    def latest(self, name: str, sites: Sequence[str], seen: float) -> dict[str, Any] | None:
        """What is new of a run since revision `seen`; None if nothing is."""

    async def order(self, run: str, name: str, of: str) -> None:
        """Tells a run what to do; `of`: the site or the merge that it is about. Raises MainstemError."""
