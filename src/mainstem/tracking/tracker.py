"""The protocol of trackers, which receive the values of a run step by step."""

import abc
from collections.abc import Mapping
from typing import Any


class Tracker(abc.ABC):
    """Receives runs, one after the other."""

    @abc.abstractmethod
    def begin(self, run: str, about: Mapping[str, Any]) -> None:
        """A run begins; `about`: its experiment, as tables. An error here ends the run."""

    def resumed(self, step: int) -> None:
        """The run that has begun is resumed after this step: later steps that it has logged before come again."""

    @abc.abstractmethod
    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Values of the run at a step."""

    @abc.abstractmethod
    def end(self, values: Mapping[str, float]) -> None:
        """The run has ended with these values; none if it did not finish."""


def flat(about: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Tables as names with dots.

    >>> flat({"algorithm": {"name": "fedogd", "step": 0.1}, "seeds": [0, 1]})
    {'algorithm.name': 'fedogd', 'algorithm.step': '0.1', 'seeds': '[0, 1]'}
    """
    found: dict[str, str] = {}
    for name, value in about.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = str(value)
    return found
