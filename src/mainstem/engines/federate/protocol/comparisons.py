"""Comparisons of a client: its losses beside those of another model, on the same samples.

A client measures them and sends them in its heartbeats; the hub adds them up.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from mainstem.engines.federate.protocol.messages import MAX_LOSS

MAX_COUNT = 2**53


class CandidateLosses(NamedTuple):
    """The losses of a client and of a candidate on the same samples."""

    version: int  # of the candidate: the number of merges in it
    samples: int
    loss: float
    candidate: float


class AloneLosses(NamedTuple):
    """The losses of a client and of a model that it learns alone, on the same samples."""

    samples: int
    loss: float
    alone: float

    @property
    def gain(self) -> float:
        """By how much its mean loss is less than that of the model that it learns alone."""
        return (self.alone - self.loss) / max(self.samples, 1)


Losses = TypeVar("Losses", CandidateLosses, AloneLosses)
COUNTS = ("version", "samples")


def checked(found: Losses) -> Losses:
    """Returns a comparison, or raises ValueError if it is not what a client measures."""
    for name, value in found._asdict().items():
        if name in COUNTS:
            if type(value) is not int or not 0 <= value <= MAX_COUNT:
                raise ValueError(f"{name} is not a count")
        elif type(value) not in (int, float) or not -MAX_LOSS <= value <= MAX_LOSS:
            raise ValueError(f"{name} is not a loss")
    return found


def with_candidate(each: Sequence[CandidateLosses]) -> dict[str, float] | None:
    """The comparisons of all clients with the newest candidate, and the lower bound of their regret."""
    if not each:
        return None
    version = max(found.version for found in each)
    counted = [found for found in each if found.version == version]
    samples, loss, candidate = (sum(values) for values in list(zip(*counted, strict=True))[1:])
    regret = {"regret_at_least": loss - candidate}
    return {"version": version, "samples": samples, "loss": loss, "candidate": candidate} | regret


def with_alone(each: Sequence[AloneLosses]) -> dict[str, float] | None:
    """The sums over the clients that learn a model alone, and how many do."""
    if not each:
        return None
    samples, loss, alone = (sum(values) for values in zip(*each, strict=True))
    return {"clients": len(each), "samples": samples, "loss": loss, "alone": alone}
