"""Contract checks for algorithms, problems, codecs and values: the suite of this package, also for your own.

Each function takes a value, runs all clauses, and raises an `AssertionError` for the clause that failed.
"""

from mainstem.testing.algorithms import check_algorithm
from mainstem.testing.codecs import check_codec
from mainstem.testing.problems import check_problem
from mainstem.testing.values import check_value
from mainstem.testing.worlds import World

__all__ = ["World", "check_algorithm", "check_codec", "check_problem", "check_value"]
