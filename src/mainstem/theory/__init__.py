"""What the papers prove, as functions."""

from mainstem.theory.fedres import exploration, fedres_step
from mainstem.theory.planner import Plan, plan

__all__ = ["Plan", "exploration", "fedres_step", "plan"]
