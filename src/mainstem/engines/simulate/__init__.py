"""Simulator: all steps in a compiled program, clients as one array axis, seeds as another."""

from mainstem.engines.simulate.engine import simulate

__all__ = ["simulate"]
