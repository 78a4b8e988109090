"""The theorem beside a run: the right one, with the right constants, in the paper's units."""

import numpy as np
import optax
import pytest

import mainstem as ms
from mainstem import parts, theory

BOX = parts.euclidean(parts.box(-2, 2))
QUADRATIC = ms.problems.quadratic(2, low=-2, high=2)
WORLD = ms.streams.sea_quadratic(4, dimension=2, spatial=0.3, temporal=0.1)
FREE = ms.problems.quadratic(2)
WORLD_FLAT = ms.streams.sea_quadratic(4, dimension=2, spatial=0.3, temporal=0.1, curvature=0.1)
RIDGE = ms.problems.linear(5, ridge=0.1, intercept=False)
REGRESSION = ms.streams.sea_ridge(4)


def run(algorithm, problem, stream, steps=40, **settings):
    return ms.simulate(algorithm, problem, stream, steps=steps, dtype="float64", **settings)


def test_fedomd_has_theorem_1_for_a_constant_step():
    found = run(ms.fedomd(0.1, mirror=BOX, sync=parts.every(3)), QUADRATIC, WORLD)
    steep = float(ms.measure.lipschitz(ms.measure.Prefix(QUADRATIC, WORLD, 40)))
    wanted = theory.fedomd_theorem_1(40, period=3, lipschitz=steep, divergence=4.0, step=0.1)
    assert float(found.bound()) == pytest.approx(float(wanted))
    assert float(found.regret()) <= float(found.bound())


def test_fedomd_with_the_entropy_on_a_large_box_has_the_modulus_of_that_box():
    """On box(0.2, 5) the entropy is 1/5-strongly convex, not 1: L^2 counts five times."""
    box = parts.box(0.2, 5.0)
    problem = ms.problems.quadratic(2, low=0.2, high=5.0)
    found = run(ms.fedomd(0.1, mirror=parts.entropy(box), sync=parts.every(3)), problem, WORLD)
    prefix = ms.measure.Prefix(problem, WORLD, 40)
    steep = float(ms.measure.lipschitz(prefix, "l2")) * np.sqrt(5)
    far = float(ms.measure.divergence(parts.entropy(box), prefix.start))
    wanted = theory.fedomd_theorem_1(40, period=3, lipschitz=steep, divergence=far, step=0.1)
    assert float(found.bound()) == pytest.approx(float(wanted))
    assert float(found.regret()) <= float(found.bound())


@pytest.mark.parametrize("step", [theory.fedomd_strongly_convex(1.0), parts.inverse_time(2.0)])
def test_fedomd_has_theorem_2_for_a_falling_step(step):
    found = run(ms.fedomd(step, mirror=BOX, sync=parts.every(3)), QUADRATIC, WORLD, seeds=3)
    bound = found.bound([5, 40])
    assert bound.theorem == "FedOMD, Theorem 2 (10)"
    assert bound.value[1] / bound.value[0] == pytest.approx((1 + np.log(40)) / (1 + np.log(5)))
    assert np.all(found.regret([5, 40]).values <= bound.value)


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (0.02, "Theorem 1"),
        (theory.fedsea_strongly_convex(1.0, smoothness=1.0, period=2), "Theorem 2"),
    ],
)
def test_fedsea_has_its_theorems_with_exact_constants(step, name):
    found = run(ms.fedsea(step, period=2), FREE, WORLD, seeds=3, measure=["expected"])
    bound = found.bound()
    assert name in bound.theorem
    assert bound.terms["spatial"] > 0
    assert found.regret(kind="expected").values.mean() <= float(bound)


def test_fedsea_constants_are_those_of_the_stream():
    found = run(ms.fedsea(0.02, period=2), FREE, WORLD, measure=["expected"])
    prefix = ms.measure.Prefix(FREE, WORLD, 40)
    best = ms.measure.heterogeneity(prefix).best
    wanted = theory.fedsea_theorem_1(
        40,
        clients=4,
        period=2,
        step=0.02,
        smoothness=1.0,
        distance=float(np.linalg.norm(best)),
        noise=1.0,
        spatial=0.3,
        temporal=0.1,
    )
    assert float(found.bound()) == pytest.approx(float(wanted), rel=1e-6)


def test_ofediq_family_is_summed_over_clients():
    plain = run(ms.ofedavg(0.002, rate=0.5), RIDGE, REGRESSION)
    rounded = run(ms.ofediq(0.0005, rate=0.5, period=4, levels=3), RIDGE, REGRESSION)
    prefix = ms.measure.Prefix(RIDGE, REGRESSION, 40)
    known = {
        "clients": 4,
        "rate": 0.5,
        "smoothness": float(ms.measure.smoothness(prefix)),
        "distance": float(ms.measure.distance(prefix)),
        "variance": float(ms.measure.variance(prefix)),
    }
    wanted = theory.ofediq_theorem_1(40, step=0.002, **known)
    assert float(plain.bound()) == pytest.approx(float(wanted))
    rounding = theory.rounding_variance(5, 3, 1)
    wanted = theory.ofediq_theorem_2(40, period=4, step=0.0005, rounding=rounding, **known)
    assert float(rounded.bound()) == pytest.approx(float(wanted))
    assert 4 * float(plain.regret()) <= float(plain.bound())
    assert np.all(np.asarray(rounded.plot(bound=True).axes[0].lines[0].get_xdata()) % 4 == 0)


def test_who_learns_alone_has_the_longest_gap():
    found = run(ms.independent(0.1, mirror=BOX), QUADRATIC, WORLD)
    steep = float(ms.measure.lipschitz(ms.measure.Prefix(QUADRATIC, WORLD, 40)))
    wanted = theory.fedomd_theorem_1(40, period=40, lipschitz=steep, divergence=4.0, step=0.1)
    assert float(found.bound()) == pytest.approx(float(wanted))
    assert float(found.regret()) <= float(found.bound())


@pytest.mark.parametrize(
    "algorithm", [ms.fedogd(0.01), ms.fedomd(0.1), ms.fedsea(0.1), ms.dynamic_fedavg(0.1)]
)
def test_delays_are_in_these_papers_theorems_not(algorithm):
    with pytest.raises(ms.MainstemError, match="the theorems are for links without delay"):
        run(algorithm, RIDGE, REGRESSION, steps=8, network=ms.network(up=1)).bound()


def test_delays_are_in_the_rate_of_fedres():
    problem, stream = ms.problems.personal(4, 2), ms.streams.residuals(5, shared=4, own=2)
    late = run(ms.fedres_sgd(0.02), problem, stream, network=ms.network(up=1, down=2))
    assert isinstance(late.bound([20, 40]), theory.Rate)


@pytest.mark.parametrize("algorithm", [ms.central(0.02), ms.fedres_erm(radius=5)])
def test_agarwals_rate_is_that_of_fedres_sgd_alone(algorithm):
    problem, stream = ms.problems.personal(4, 2), ms.streams.residuals(5, shared=4, own=2)
    with pytest.raises(ms.MainstemError, match=r"there is none for .* no family of theorems"):
        run(algorithm, problem, stream, steps=8).bound()


def test_a_rate_is_fitted_and_marked_as_such():
    problem, stream = ms.problems.personal(4, 2), ms.streams.residuals(5, shared=4, own=2)
    bound = run(ms.fedres_sgd(0.02), problem, stream, steps=60).bound([20, 40, 60])
    assert isinstance(bound, theory.Rate)
    assert "no guarantee" in str(bound)
    assert bound.constant > 0


def test_dynamic_fedavg_has_its_rate():
    problem = ms.problems.batched(ms.problems.logistic(2, ridge=2.0, intercept=False))
    stream = ms.streams.walking(clients=4, holds=20)
    found = run(ms.dynamic_fedavg(0.1), problem, stream, measure=["deviation"])
    assert "Theorem 1 (28)" in found.bound().theorem


def test_the_figure_names_the_theorem_and_the_units():
    found = run(ms.fedomd(0.1, mirror=BOX), QUADRATIC, WORLD)
    axes = found.plot(bound=True).axes[0]
    assert axes.get_ylabel() == "collective regret, eq. (2)"
    labels = [line.get_label() for line in axes.lines]
    assert labels == ["fedomd", "FedOMD, Theorem 1 (7)"]
    measured, bound = (np.asarray(line.get_ydata()) for line in axes.lines)
    assert np.all(measured <= bound)


def test_comparisons_of_two_papers_are_in_means_over_clients():
    stream, problem = ms.streams.sea_quadratic(4, dimension=2), QUADRATIC
    both = [
        run(ms.fedomd(0.1, mirror=BOX), problem, stream),
        run(ms.fedogd(0.1), FREE, stream),
    ]
    compared = ms.compare(both, bound=True)
    rows = compared.rows
    assert compared.figure.axes[0].get_ylabel() == "regret"
    assert rows[1]["regret"] == pytest.approx(float(both[1].regret()))
    assert all(row["regret"] <= row["bound"] for row in rows)


OUTSIDE = [
    (ms.fedogd(5.0), "ofediq_theorem_1: step must be below .* got 5.0"),
    (ms.fedogd(parts.inverse_time(1.0)), "for a constant step"),
    (ms.fedogd(0.01, server=optax.adam(0.1)), "there is none for fedogd: its algorithm"),
    (ms.fedogd(0.01, codec=parts.top_k(2)), "an unbiased codec"),
    (ms.fedogd(0.01, sync=parts.after_steps([2, 3])), "a regular sync"),
    (ms.fedogd(0.01, participation=parts.exactly(2)), "that toss a coin each"),
    (ms.fedomd(0.1, codec=parts.half()), "for codec=plain"),
    (ms.dynamic_fedavg(0.1, sync=parts.every(2)), "an exchange after every step"),
    (ms.fedomd(0.1, collect=parts.median()), "for collect=total"),
    (ms.fedomd(0.1), "no known Lipschitz constant"),
    (ms.fedomd(0.1, participation=parts.exactly(2)), "full participation"),
    (ms.fedsea(0.1), "grows with the model"),
]
ALIKE = [
    (ms.fedogd(parts.inverse_sqrt(0.1)), "no theorem has the step"),
    (ms.ofediq(0.01, collect=parts.median()), "for collect=total"),
    (ms.fedogd(0.01, sync=parts.every(4, offset=1)), "a regular sync"),
    (ms.fedsea(0.1, codec=parts.half()), "for codec=plain"),
    (ms.dynamic_fedavg(0.1, codec=parts.half()), "for codec=plain"),
]


@pytest.mark.parametrize(
    ("algorithm", "message"),
    OUTSIDE + [pytest.param(*each, marks=pytest.mark.slow) for each in ALIKE],
)
def test_a_run_outside_the_assumptions_is_refused_with_the_reason(algorithm, message):
    with pytest.raises(ms.MainstemError, match=message):
        run(algorithm, RIDGE, REGRESSION, steps=8).bound()


def test_a_falling_step_for_more_curvature_than_there_is_has_no_theorem():
    step = theory.fedsea_strongly_convex(0.5, smoothness=1.0, period=1)
    problem = ms.problems.quadratic(2, curvature=0.1)
    found = run(ms.fedsea(step, period=1), problem, WORLD_FLAT, measure=["expected"])
    with pytest.raises(ms.MainstemError, match=r"mu at most the curvature 0\.1 .* not 0\.5"):
        found.bound()
