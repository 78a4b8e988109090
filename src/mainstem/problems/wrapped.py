"""Wrapped problems: the base class of problems that change another problem."""

from typing import Any

from mainstem.base import Domain, Problem


class Wrapped(Problem):
    """A problem with the domain, convexity, curvature and rounding of another one, `of`."""

    of: Problem

    @property
    def domain(self) -> Domain:
        return self.of.domain

    @property
    def convex(self) -> bool:
        return self.of.convex

    @property
    def curvature(self) -> Any:
        return self.of.curvature

    @property
    def smooth(self) -> float | None:
        return self.of.smooth

    @property
    def rounding(self) -> float | None:
        return self.of.rounding

    @property
    def block(self) -> int | None:
        return self.of.block
