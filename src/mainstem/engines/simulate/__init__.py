"""Simulator: all steps in a compiled program, clients as one array axis, seeds as another."""

from mainstem.engines.simulate.engine import simulate
from mainstem.engines.simulate.sweep import sweep

__all__ = ["simulate", "sweep"]
