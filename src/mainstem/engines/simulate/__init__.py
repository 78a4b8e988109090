"""The simulator: the horizon compiled, clients as an array axis, seeds as another."""

from mainstem.engines.simulate.engine import simulate

__all__ = ["simulate"]
