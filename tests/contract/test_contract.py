"""One contract for every exported algorithm: a new one joins by being exported."""

import functools

import pytest

from mainstem import algorithms
from tests.contract.cases import CASES
from tests.contract.checks import CLAUSES

BUILT = {name: functools.cache(build) for name, build in CASES.items()}  # compiled once a worker


# Further combinations of the same parts, for `make test-slow`.
SLOW = (
    "ofediq median",
    "fedomd simplex",
    "fedomd irregular",
    "fedsea printed",
    "fedres_sgd batches",
    "dynamic_fedavg batches",
)


# Clauses that ask more of the engine than of the algorithm: in the quick tier for some.
OF_THE_ENGINE = ("chunks_do_not_matter", "seeds_are_runs")
ENGINE_TRIED_BY = ("fedogd", "ofediq quantised", "fedomd box", "fedres_sgd")


def _case(name, clause):
    slow = name in SLOW or (clause.__name__ in OF_THE_ENGINE and name not in ENGINE_TRIED_BY)
    marks = [pytest.mark.xdist_group(name)] + [pytest.mark.slow] * slow
    return pytest.param(name, clause, marks=marks, id=f"{name}-{clause.__name__}")


@pytest.mark.parametrize(
    ("name", "clause"), [_case(name, clause) for name in CASES for clause in CLAUSES]
)
def test_contract(name, clause):
    clause(BUILT[name])


def test_every_exported_algorithm_is_under_contract():
    assert set(algorithms.__all__) <= set(CASES)
