"""Streams with data on the host that a compiled program does not need: tables, files, other streams."""

import abc
from typing import Any

import numpy as np

from mainstem.base import At, Sample, Sampler, Stream


class Hosted(Stream):
    """A stream whose samples are computed by another value, its `device`."""

    @property
    @abc.abstractmethod
    def device(self) -> Sampler:
        """The sampler that turns pieces into samples."""

    def seen_by(self, k: int, steps: int) -> dict[str, np.ndarray] | None:
        """What client k knows after its first steps, by which its next row is prepared; None: not known."""
        return None

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        return self.device.sample(piece, at, drawn)
