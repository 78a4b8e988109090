"""What the tests of all problems share: gradients by central differences, in float64."""

import jax
import numpy as np

from mainstem import random
from mainstem.base import At, Sample, flat

AT = At(1, 0, random.root(0))


def check_gradient(problem, sample, size=None, seed=0, coordinates=None, spread=0.3):
    """The gradient of the loss at a random model against (loss(w + e) - loss(w - e)) / 2e."""
    with jax.enable_x64(True):
        vectors = flat(problem)
        loss = jax.jit(vectors.loss)
        w = spread * np.random.default_rng(seed).normal(size=problem.size)
        gradient = np.asarray(jax.grad(vectors.loss)(w, sample))
        chosen = range(problem.size) if coordinates is None else coordinates
        for i in chosen:
            e = np.zeros(problem.size)
            e[i] = 1e-5
            slope = (float(loss(w + e, sample)) - float(loss(w - e, sample))) / 2e-5
            np.testing.assert_allclose(gradient[i], slope, rtol=1e-6, atol=1e-8)
    return w, gradient


def check_form(problem, seen, seed=0):
    """A problem's quadratic form is its loss, everywhere."""
    with jax.enable_x64(True):
        for w in np.random.default_rng(seed).normal(size=(5, problem.size)):
            value = problem.form(seen).value(w)
            np.testing.assert_allclose(value, problem.loss(w, seen), rtol=1e-12, atol=1e-12)


def draw(features, seed=0, label=None):
    """A sample with normal features, and a normal target unless there is a label."""
    rng = np.random.default_rng(seed)
    return Sample(rng.normal(size=features), rng.normal() if label is None else np.int32(label))
