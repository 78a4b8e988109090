"""Helpers for the tests of all problems: gradients by central differences, in float64."""

import jax
import numpy as np

from mainstem import random
from mainstem.base import At, Flat, Sample

AT = At(1, 0, random.root(0))


def check_gradient(problem, sample, coordinates=None, spread=0.3):
    """The gradient of the loss at a random model against (loss(w + e) - loss(w - e)) / 2e."""
    with jax.enable_x64(True):
        vectors = Flat(problem)
        both = jax.jit(jax.value_and_grad(vectors.loss))
        w = spread * np.random.default_rng(0).normal(size=problem.parameters)
        gradient = np.asarray(both(w, sample)[1])
        chosen = np.arange(problem.parameters) if coordinates is None else coordinates
        slopes = []
        for i in chosen:
            e = np.zeros(problem.parameters)
            e[i] = 1e-5
            slopes.append(float(both(w + e, sample)[0] - both(w - e, sample)[0]) / 2e-5)
    np.testing.assert_allclose(gradient[chosen], slopes, rtol=1e-6, atol=1e-8)
    return gradient[chosen]


def check_form(problem, seen):
    """A problem's quadratic form is its loss, everywhere."""

    def both(w):
        return problem.form(seen).value(w), problem.loss(w, seen)

    with jax.enable_x64(True):
        values, losses = jax.jit(jax.vmap(both))(
            np.random.default_rng(0).normal(size=(5, problem.parameters))
        )
    np.testing.assert_allclose(values, losses, rtol=1e-12, atol=1e-12)


def draw(features, label=None):
    """A sample with normal features, and a normal target unless there is a label."""
    rng = np.random.default_rng(0)
    return Sample(rng.normal(size=features), rng.normal() if label is None else np.int32(label))
