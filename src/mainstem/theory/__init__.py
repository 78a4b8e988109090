"""What the papers prove, as functions."""

from mainstem.theory.planner import Plan, plan

__all__ = ["Plan", "plan"]
