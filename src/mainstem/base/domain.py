"""Domains: the base class of closed convex sets of models."""

import abc
from typing import Any, ClassVar

import numpy as np

from mainstem.errors import BadParameter
from mainstem.value import Value


class Domain(Value):
    """A closed convex set of models."""

    whole: ClassVar[bool] = False  # the entire space: nothing is projected
    projects: ClassVar[bool] = True  # `project` gives the nearest point in euclidean distance
    unit_sum: ClassVar[bool] = False  # coordinates are at least 0 and sum to 1

    @property
    def bounded(self) -> bool:
        """Whether the set is bounded."""
        return True

    @property
    def title(self) -> str:
        """The set in words: "l2 ball of radius 2"."""
        return repr(self)

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """The lower and upper bounds of the coordinates if the set is a box, else None."""
        return None

    @property
    def reach(self) -> Any:
        """The radius if the set is a euclidean ball around 0, infinity for the entire space, else None."""
        return None

    def check(self, size: int) -> None:
        """Raises an error if models of this size do not fit."""

    @abc.abstractmethod
    def project(self, params: Any) -> Any:
        """The point of the set that is nearest to `params`."""

    def support(self, gradient: Any) -> Any:
        """The largest <gradient, u> over the points u of the set, which must be bounded."""
        raise BadParameter(f"{self.title}: is not bounded")

    def corners(self, size: int) -> np.ndarray | None:
        """Points whose convex hull is the set, if they are few, else None."""
        return None

    def farthest(self, params: np.ndarray) -> float:
        """The largest distance from `params` to a point of the set; it is attained at a corner."""
        corners = self.corners(len(params))
        if corners is None:
            raise BadParameter(f"{self.title}: its farthest point is not known")
        return float(np.max(np.linalg.norm(corners - params, axis=1)))

    def ball_of(self, p: Any) -> bool:
        """Whether the projection in the divergence of the p-norm map is a scaling."""
        return False
