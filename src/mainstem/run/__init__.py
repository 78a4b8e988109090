"""What happened: the trace, the bits, the models, and the folder they are kept in."""

from mainstem.run.run import Run, compare, load
from mainstem.run.summary import Summary

__all__ = ["Run", "Summary", "compare", "load"]
