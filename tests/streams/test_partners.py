"""Appendix C's world of Agarwal et al. 2020."""

import numpy as np

import mainstem as ms
from mainstem.streams import partners
from tests.streams.test_generated import drawn


def test_the_features_are_those_of_the_paper():
    samples = drawn(partners(), steps=20000, clients=1)
    (shared, own), label = samples.shown, samples.hidden
    a, b = (1 - own[:, 0]).T
    noise, nothing = (shared[:, 0] - np.stack([a, b], axis=1)).T
    np.testing.assert_array_equal(label, 1)
    np.testing.assert_allclose(nothing, 0, atol=1e-6)
    drawn_each = np.stack([a, b, noise])
    errors = 4.5 / np.sqrt(a.size)
    np.testing.assert_allclose(drawn_each.mean(axis=1), 0, atol=errors)
    np.testing.assert_allclose(np.cov(drawn_each), np.diag([1, 1, 0.25]), atol=1.5 * errors)


def test_the_best_pair_has_no_loss_and_the_first_one_the_noises():
    """(0, 1) twice predicts y = 1 exactly; (1, 0) twice is wrong by epsilon."""
    for pair, loss in ((([0.0, 1.0], [0.0, 1.0]), 0.0), (([1.0, 0.0], [1.0, 0.0]), 0.25)):
        problem = ms.problems.personal(2, 2, start=pair)
        run = ms.simulate(ms.fedres_sgd(step=1e-12), problem, partners(), steps=4000)
        assert abs(run.loss.mean() - loss) < 4.5 * 0.25 * np.sqrt(2 / 4000) * (loss > 0) + 1e-9
