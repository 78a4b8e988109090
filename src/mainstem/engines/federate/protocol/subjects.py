"""The names of a run's streams, subjects and bucket on the NATS server."""

import re
from typing import NamedTuple

from mainstem import check

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")


def token(owner: str, parameter: str, name: str) -> str:
    """Checks that `name` can be one token of a subject."""
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        wanted = "be up to 64 letters, digits, - and _"
        raise check.refuse(owner, parameter, wanted, name)
    return name


class Subjects(NamedTuple):
    """The names of one run."""

    run: str

    @property
    def upload_stream(self) -> str:
        """The stream that logs uploads."""
        return f"ms-{self.run}-up"

    @property
    def broadcast_stream(self) -> str:
        """The stream that keeps the latest broadcast, the run document and the status."""
        return f"ms-{self.run}-down"

    @property
    def bucket(self) -> str:
        """The key-value bucket that holds the hub's state."""
        return f"ms-{self.run}-hub"

    @property
    def timeline_stream(self) -> str:
        """The stream that keeps the run's timeline."""
        return f"ms-{self.run}-time"

    def upload(self, client: str) -> str:
        """Uploads of a client."""
        return f"ms.{self.run}.up.{client}"

    def broadcast(self, chunk: int | str = 0) -> str:
        """Broadcasts of the merged model, a subject for each chunk."""
        return f"ms.{self.run}.model.{chunk}"

    def candidate(self, chunk: int | str = 0) -> str:
        """Broadcasts of a candidate, a subject for each chunk."""
        return f"ms.{self.run}.candidate.{chunk}"

    @property
    def hub_heartbeat(self) -> str:
        """Heartbeats of the hub."""
        return f"ms.{self.run}.pulse"

    @property
    def document(self) -> str:
        """The run document."""
        return f"ms.{self.run}.spec"

    @property
    def status(self) -> str:
        """The hub's status."""
        return f"ms.{self.run}.status"

    def moment(self, width: int | str, slot: int | str) -> str:
        """A moment of the timeline, see protocol/timeline.py."""
        return f"ms.{self.run}.time.{width}.{slot}"

    def heartbeat(self, client: str) -> str:
        """Heartbeats of a client."""
        return f"ms.{self.run}.here.{client}"

    def refusals(self, client: str) -> str:
        """Notices to a client of what the hub has refused."""
        return f"ms.{self.run}.no.{client}"

    @property
    def control(self) -> str:
        """Commands to the hub: pause, resume, back, finish, candidate."""
        return f"ms.{self.run}.control"
