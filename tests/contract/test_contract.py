"""One contract for every exported algorithm: a new one joins by being exported."""

import pytest

from mainstem import algorithms, parts, spec
from mainstem.testing import check_codec, check_value
from mainstem.testing.algorithms import CLAUSES, CLIENTS
from tests.contract.cases import CASES

# Further combinations of the same parts, for `make test-slow`.
SLOW = (
    "fedomd",  # as in a box
    "fedsea",
    "independent",
    "ofedavg",
    "ofediq",  # as quantised
    "SendGradients",  # fedogd's twin, as the next four are fedomd's, dynamic_fedavg's, ...
    "SendModels",
    "SendEpochs",
    "FollowResiduals",
    "Resolve",
    "fictitious_play",  # as fedres_erm
    "central",  # as fedres_sgd
    "centred_clipping",  # tests/algorithms/test_centred_clipping.py has its equations
    "centred clipping of models",
    "guarded",  # as of models
    "guarded samples",
    "guarded error feedback",
    "ofediq median",
    "fedogd schedule",
    "fedomd simplex",
    "fedomd irregular",
    "fedsea printed",
    "fedres_sgd batches",
    "fedres_sgd gradients",
    "dynamic_fedavg batches",
    "dynamic_fedavg periods",
    "fedogd error feedback",
    "fedogd half broadcasts",
    "fedomd rounded broadcasts",  # tests/algorithms/test_downlink.py has its equations
    "fedogd adam",  # tests/algorithms/test_server_optimizers.py has its equations
)


# Clauses that ask more of the engine than of the algorithm: in the quick tier for some.
OF_THE_ENGINE = (
    "chunks_do_not_matter",
    "seeds_are_runs",
    "nested_params_come_back",
    "numbers_are_traced",
    "one_client_is_enough",
)
ENGINE_TRIED_BY = ("ofediq quantised", "fedres_sgd")


def _case(name, clause):
    slow = name in SLOW or (clause.__name__ in OF_THE_ENGINE and name not in ENGINE_TRIED_BY)
    marks = [pytest.mark.slow] * slow
    return pytest.param(name, clause, marks=marks, id=f"{name}-{clause.__name__}")


@pytest.mark.parametrize(
    ("name", "clause"), [_case(name, clause) for name in CASES for clause in CLAUSES]
)
def test_contract(name, clause):
    case = CASES[name]
    clause(case.algorithm, case.world(CLIENTS))


@pytest.mark.parametrize("name", CASES)
def test_an_algorithm_is_a_value(name):
    algorithm = CASES[name].algorithm
    if name == "fedogd schedule":  # a closure of optax: nothing can pickle it
        assert "code " in spec.plain(algorithm)["step"]["function"]
        return
    check_value(algorithm)


def test_every_exported_algorithm_is_under_contract():
    assert set(algorithms.__all__) <= set(CASES)


@pytest.mark.parametrize(
    "codec", [parts.plain(), parts.half(), parts.top_k(7), parts.quantiser(3, 4)], ids=repr
)
def test_codecs(codec):
    check_codec(codec)
