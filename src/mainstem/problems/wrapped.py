"""What problems share that are made of another problem."""

from typing import Any

from mainstem.base import Domain, Problem


class Wrapped(Problem):
    """A problem on the domain of another one, `of`, and as convex as that."""

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
    def block(self) -> int | None:
        return self.of.block
