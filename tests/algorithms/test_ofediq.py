"""OFedIQ equals a loop written from Kwon et al. 2023, and its special cases are what they are called."""

import jax
import numpy as np
import pytest

import mainstem as ms
from mainstem import parts, random
from mainstem.base import At, Flat, Sample, Setting
from tests.algorithms.table import agrees, regression
from tests.reference.ofediq import ofediq as loop
from tests.reference.quantiser import quantise

T, K, D = 36, 5, 4
RATES = [0.3, 0.5, 0.9, 1.0, 0.7]
WORLD = regression(T, K, D)


def _participants(participation, seed=0):
    """The clients that the simulator samples, as a function of t."""
    with jax.enable_x64(True):
        sampled = {
            t: np.asarray(participation.heard(random.root(seed), t, K)) for t in range(1, T + 1)
        }
    return lambda t: [k for k in range(K) if sampled[t][k]]


@pytest.mark.parametrize("period", [1, 4])
@pytest.mark.parametrize("rates", [RATES, 0.5], ids=["rate per client", "one rate"])
def test_ofediq_equals_the_papers_loop(period, rates):
    algorithm = ms.ofediq(0.05, rate=rates, period=period)
    run = ms.simulate(algorithm, WORLD.problem, WORLD.stream, steps=T, dtype="float64")
    participants = _participants(algorithm.participation)
    expected = loop(
        WORLD.gradient, np.zeros(D), T, K, 0.05, np.broadcast_to(rates, K), period, participants
    )
    agrees(run, expected, WORLD.loss)


def test_the_quantised_message_is_the_papers():
    algorithm = ms.ofediq(0.05, rate=RATES, period=3, levels=3, blocks=2)
    run = ms.simulate(algorithm, WORLD.problem, WORLD.stream, steps=T, dtype="float64")

    def quantised(vector, k, t):
        with jax.enable_x64(True):
            key = random.fold(random.fold(random.root(0), random.CODEC, t), k)
            draws = np.asarray(random.uniform(key, (D,)))
        return quantise(vector, 3, 2, draws)

    participants = _participants(algorithm.participation)
    expected = loop(WORLD.gradient, np.zeros(D), T, K, 0.05, RATES, 3, participants, quantised)
    agrees(run, expected, WORLD.loss)


def test_fedogd_and_ofedavg_are_special_cases():
    pairs = [(ms.fedogd(0.1), ms.ofediq(0.1)), (ms.ofedavg(0.1, 0.4), ms.ofediq(0.1, rate=0.4))]
    for special, general in pairs:
        one, other = (
            ms.simulate(a, WORLD.problem, WORLD.stream, steps=T, dtype="float64")
            for a in (special, general)
        )
        assert np.array_equal(one.loss, other.loss)


def test_fedogd_is_gradient_descent_on_the_mean_loss():
    run = ms.simulate(ms.fedogd(0.1), WORLD.problem, WORLD.stream, steps=T, dtype="float64")
    w = np.zeros(D)
    for t in range(1, T + 1):
        w = w - 0.1 * np.mean([WORLD.gradient(w, k, t) for k in range(K)], axis=0)
    assert np.allclose(np.ravel(run.model), w, rtol=0, atol=1e-12)


def test_a_schedule_applies_to_clients_and_server_alike():
    algorithm = ms.ofediq(parts.inverse_sqrt(0.2))
    run = ms.simulate(algorithm, WORLD.problem, WORLD.stream, steps=T, dtype="float64")
    w = np.zeros(D)
    for t in range(1, T + 1):
        slope = np.mean([WORLD.gradient(w, k, t) for k in range(K)], axis=0)
        w = w - 0.2 / np.sqrt(t) * slope
    assert np.allclose(np.ravel(run.model), w, rtol=0, atol=1e-12)


def test_adagrad_is_refused():
    with pytest.raises(ms.MainstemError, match="step must depend on t alone"):
        ms.ofediq(parts.adagrad(0.1))


def test_a_broadcast_between_two_syncs_retains_what_was_not_sent():
    """At the free pace a model may come at any step; the gradients so far are sent all the same."""
    algorithm = ms.ofediq(0.1, period=3)
    problem = ms.problems.linear(2, intercept=False)
    vectors = Flat(problem)
    gradient, at = vectors.gradient, At(1, 0, random.root(0))
    start, client_of = algorithm.start(vectors.init(at.key), Setting(1, 1, gradient))
    seen = [Sample(np.array([1.0, 0.0]), 1.0), Sample(np.array([0.0, 1.0]), 2.0)]
    client = algorithm.learn(client_of(0), gradient, seen[0], at)
    client = algorithm.download(client, start.params + 5, gradient, 0, 1)
    client = algorithm.learn(client, gradient, seen[1], at)
    _, body, _ = algorithm.upload(client, at)
    assert np.allclose(body, [-1.0, 5.0 - 2.0])
