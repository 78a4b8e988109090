"""Checks that every algorithm, problem and codec owes: the package's own suite, for yours too.

Each takes a value, runs all its clauses, and raises an `AssertionError` that says which one failed.
"""

from mainstem.testing.algorithms import check_algorithm
from mainstem.testing.codecs import check_codec
from mainstem.testing.problems import check_problem
from mainstem.testing.values import check_value
from mainstem.testing.worlds import World

__all__ = ["World", "check_algorithm", "check_codec", "check_problem", "check_value"]
