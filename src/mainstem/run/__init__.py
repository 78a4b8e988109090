"""Runs: the trace, the bits, the models, and the run folder that stores them."""

from mainstem.run.run import Run, compare, load
from mainstem.run.summary import Summary

__all__ = ["Run", "Summary", "compare", "load"]
