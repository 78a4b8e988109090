"""Runs: the trace, the bits, the models, and the run folder that stores them."""

from mainstem.run.comparison import Comparison, compare
from mainstem.run.model import Model
from mainstem.run.model_file import load_model
from mainstem.run.run import Run, load
from mainstem.run.summary import Summary
from mainstem.run.swept import Sweep

__all__ = ["Comparison", "Model", "Run", "Summary", "Sweep", "compare", "load", "load_model"]
