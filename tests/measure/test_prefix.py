"""Prefixes with absent clients, odd orders, models outside the domain, and searches."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mainstem.base import Form, constant
from mainstem.errors import MainstemError
from mainstem.measure import (
    Prefix,
    distance,
    divergence,
    heterogeneity,
    lipschitz,
    mean_smoothness,
    path_length,
    smoothness,
    spread,
)
from mainstem.parts import box, entropy, euclidean
from mainstem.problems import custom, experts, logistic, quadratic
from mainstem.streams import arrays, generated


def half_there():
    """Two clients that take turns in seeing the same target."""
    return generated(lambda key, t, k: ((), jnp.full(2, 1.5), (t + k) % 2), 2)


def test_who_saw_nothing_makes_no_slope_steeper():
    prefix = Prefix(quadratic(2, low=0, high=3), half_there(), 6)
    assert float(lipschitz(prefix)) == pytest.approx(1.5 * np.sqrt(2))


def test_who_saw_nothing_adds_no_noise():
    found = spread(Prefix(quadratic(2), half_there(), 8), np.full(2, 1.5))
    assert float(found.noise) == pytest.approx(0)
    assert float(found.spatial) == pytest.approx(0)


def test_a_step_at_which_nobody_is_there_is_no_move():
    stream = generated(lambda key, t, k: ((), jnp.full(2, 1.5), t % 2), 2)
    assert path_length(Prefix(quadratic(2), stream, 6)) == pytest.approx(0)


def test_some_of_the_samples_are_drawn_and_not_picked_in_step():
    """Every other sample is another client's."""
    steps, clients = 2048, 2
    draw = np.random.default_rng(0)
    x = draw.normal(size=(steps, clients, 3)) * np.array([3.0, 0.1])[:, None]
    y = draw.integers(0, 2, (steps, clients))
    stream = generated(
        lambda key, t, k: (constant(x)[t - 1, k], jnp.asarray(y)[t - 1, k]), clients, steps=steps
    )
    flat = x.reshape(-1, 3)
    most = np.linalg.eigvalsh(flat.T @ flat / len(flat) / 4)[-1]
    found = mean_smoothness(Prefix(logistic(3, intercept=False), stream, steps))
    assert found.how == "about"
    assert float(found) == pytest.approx(most, rel=0.1)  # at zero, where it is largest


def test_the_power_method_does_not_start_where_softmax_is_flat():
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(40, 3)), draw.integers(0, 4, 40).astype(np.int32)
    problem = custom(
        lambda key: {"w": jnp.zeros((3, 4))},
        lambda p, x: x @ p["w"],
        optax.losses.softmax_cross_entropy_with_integer_labels,
        classes=4,
    )
    assert float(smoothness(Prefix(problem, arrays(x, y, clients=4), 10))) > 0.1


def test_linear_losses_have_no_known_noise():
    form = Form(jnp.asarray(0.0), -jnp.array([1.0, 2.0]), jnp.asarray(0.0))
    stream = generated(lambda key, t, k: ((), jnp.array([1.0, 2.0])), 2, expected=lambda t, k: form)
    assert np.isnan(heterogeneity(Prefix(experts(2), stream, 5)).noise).all()


@pytest.mark.parametrize(
    ("mirror", "start"),
    [
        (entropy(), [0.0, 1.0]),
        (entropy(), [5.0, 1.0]),
        (entropy(box(1, 2)), [-9.0]),
        (euclidean(box(-1, 1)), [9.0]),
        ("euclidean", [0.0]),
    ],
)
def test_divergence_from_outside_is_refused(mirror, start):
    with pytest.raises(MainstemError, match=r"divergence: (start|mirror) must"):
        divergence(mirror, start)


def test_what_is_no_domain_is_refused():
    with pytest.raises(MainstemError, match="prefix: domain must be a domain"):
        Prefix(quadratic(2), half_there(), 5, domain="box")


def test_a_search_is_not_exact():
    draw = np.random.default_rng(0)
    stream = arrays(draw.normal(size=(24, 3)), draw.integers(0, 2, 24).astype(np.int32), clients=3)
    assert distance(Prefix(logistic(3, ridge=0.3), stream, 8)).how == "about"
