"""Second derivatives by Kronecker products: those of jax.hessian, entry by entry."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mainstem as ms
from mainstem.base import Flat, Sample
from mainstem.measure.linear_hessian import linear_hessian

PROBLEMS = [
    pytest.param(ms.problems.softmax(4, 3, ridge=0.2), marks=pytest.mark.slow),
    pytest.param(ms.problems.softmax(4, 2), marks=pytest.mark.slow),
    pytest.param(ms.problems.logistic(4), marks=pytest.mark.slow),
    ms.problems.logistic(4, ridge=0.5, intercept=False),
    ms.problems.linear(4, ridge=0.1),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_equals_the_derivatives_of_jax(problem):
    draw = np.random.default_rng(0)
    target = draw.integers(problem.classes, size=12) if problem.classes else draw.normal(size=12)
    seen = Sample(draw.normal(size=(12, 4)), target)
    params, weights = draw.normal(size=problem.parameters), draw.uniform(size=12)
    vectors = Flat(problem)

    def mean(params):
        return weights @ jax.vmap(lambda each: vectors.loss(params, each))(seen)

    with jax.enable_x64(True):
        seen = jax.tree.map(jnp.asarray, seen)
        found = linear_hessian(problem, problem.linear, seen)(params, weights)
        wanted = np.asarray(jax.hessian(mean)(jnp.asarray(params)))
    assert np.allclose(found, wanted, rtol=0, atol=1e-12)
