"""Where models live: closed convex sets, and what is known of them."""

import abc
from typing import Any, ClassVar

import numpy as np

from mainstem.errors import BadParameter
from mainstem.value import Value


class Domain(Value):
    """A closed convex set of models."""

    whole: ClassVar[bool] = False  # all points: nothing is ever projected
    projects: ClassVar[bool] = True  # `project` gives the nearest point in euclidean distance
    unit_sum: ClassVar[bool] = False  # coordinates are at least 0 and sum to 1

    @property
    def bounded(self) -> bool:
        """Whether there is a largest model."""
        return True

    @property
    def title(self) -> str:
        """The set in words: "l2 ball of radius 2"."""
        return repr(self)

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """The ends of every coordinate, where that is all there is to it: a box."""
        return None

    @property
    def reach(self) -> Any:
        """The radius, where the set is a euclidean ball around the origin; infinity for everything."""
        return None

    def check(self, size: int) -> None:
        """Refuses models of a size that does not fit."""

    @abc.abstractmethod
    def project(self, params: Any) -> Any:
        """The point of the set that is nearest to `params`."""

    def support(self, gradient: Any) -> Any:
        """The largest <gradient, u> over the points u of a bounded set."""
        raise BadParameter(f"{self.title}: is not bounded")

    def corners(self, size: int) -> np.ndarray | None:
        """Points whose convex hull is the set, where these are few."""
        return None

    def farthest(self, params: np.ndarray) -> float:
        """The largest distance from `params` to a point of a bounded set: a corner has it."""
        corners = self.corners(len(params))
        if corners is None:
            raise BadParameter(f"{self.title}: its farthest point is not known")
        return float(np.max(np.linalg.norm(corners - params, axis=1)))

    def ball_of(self, p: Any) -> bool:
        """Whether scaling is the projection in the divergence of the p-norm map."""
        return False
