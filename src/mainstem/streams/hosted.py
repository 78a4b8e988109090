"""Streams that keep on the host what no compiled program needs: tables, files, other streams."""

import abc
from typing import Any

from mainstem.base import At, Sample, Sampler, Stream


class Hosted(Stream):
    """A stream whose samples are made by another value, its `device`."""

    @property
    @abc.abstractmethod
    def device(self) -> Sampler:
        """What makes samples of pieces."""

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        return self.device.sample(piece, at, drawn)
