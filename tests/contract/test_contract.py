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


def _case(name):
    marks = [pytest.mark.xdist_group(name)] + [pytest.mark.slow] * (name in SLOW)
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("name", [_case(name) for name in CASES])
def test_contract(name, clause):
    clause(BUILT[name])


def test_every_exported_algorithm_is_under_contract():
    assert set(algorithms.__all__) <= set(CASES)
