"""What things are called on the broker. Each run has its own streams and subjects."""

import re
from typing import NamedTuple

from mainstem import check

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")


def token(owner: str, parameter: str, name: str) -> str:
    """`name`, if it can be a part of a subject."""
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        wanted = "be up to 64 letters, digits, - and _"
        raise check.refuse(owner, parameter, wanted, name)
    return name


class Names(NamedTuple):
    """The names of a run."""

    run: str

    @property
    def uploads(self) -> str:
        """The stream of uploads."""
        return f"ms-{self.run}-up"

    @property
    def broadcasts(self) -> str:
        """The stream that keeps the latest model, the spec and the status."""
        return f"ms-{self.run}-down"

    @property
    def bucket(self) -> str:
        """The key-value bucket of the hub's state."""
        return f"ms-{self.run}-hub"

    def up(self, client: str) -> str:
        """Where a client says what it has learnt."""
        return f"ms.{self.run}.up.{client}"

    def model(self, piece: int | str = 0) -> str:
        """Where the hub says the model, piece by piece."""
        return f"ms.{self.run}.model.{piece}"

    def candidate(self, piece: int | str = 0) -> str:
        """Where the hub says a model that the clients shall compare themselves with."""
        return f"ms.{self.run}.candidate.{piece}"

    @property
    def pulse(self) -> str:
        """Where the hub says that it is there."""
        return f"ms.{self.run}.pulse"

    @property
    def spec(self) -> str:
        """Where the run's document lies."""
        return f"ms.{self.run}.spec"

    @property
    def status(self) -> str:
        """Where the hub says how it goes."""
        return f"ms.{self.run}.status"

    def here(self, client: str) -> str:
        """Where a client says that it is there."""
        return f"ms.{self.run}.here.{client}"

    def refusals(self, client: str) -> str:
        """Where the hub says to one client what it has refused."""
        return f"ms.{self.run}.no.{client}"

    @property
    def control(self) -> str:
        """Where the hub takes orders."""
        return f"ms.{self.run}.control"
