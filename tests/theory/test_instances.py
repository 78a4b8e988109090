"""Every theorem on random instances inside its assumptions: what is measured never exceeds the bound.

The runs, their regret and `run.bound()` are the product's. The constants that go into the theorems
are worked out by hand in `instances.py`, and where `run.bound()` measures them it must agree.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mainstem as ms
from mainstem import parts, rules, theory
from mainstem.errors import BadParameter
from mainstem.theory.fedsea import fedsea_limit
from mainstem.theory.ofediq import noise_factor, ofedavg_limit
from tests.theory import instances
from tests.theory.instances import RUNS


@pytest.fixture(autouse=True, scope="module")
def hasty():
    """Every program runs once: optimising it would cost more than it brings."""
    before = jax.config.jax_disable_most_optimizations
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def holds(measured, bound):
    """Nothing measured is above the bound; how near the nearest came."""
    measured, bound = np.asarray(measured), np.asarray(bound)
    assert np.all(measured <= bound * (1 + 1e-9) + 1e-9), (measured, bound)
    return np.max(measured / np.maximum(bound, 1e-9))


def holds_on_average(measured, bound):
    """The mean over the seeds, less three standard errors, is not above the bound."""
    error = measured.std(axis=0, ddof=1) / np.sqrt(len(measured))
    return holds(measured.mean(axis=0) - 3 * error, bound)


def some(steps, period=1):
    """Up to three prefixes of whole periods, the first and the last among them."""
    return [period * int(n) for n in np.unique(np.geomspace(1, steps // period, 3).round())]


def fedomd_1(drawn):
    """The tuned step, or any other."""
    game, pace = drawn
    known = {"gap": game.gap, "lipschitz": game.lipschitz, "divergence": game.divergence}
    tuned = rules.fedomd_convex(game.steps, **known)
    step = pace * float(tuned.rate((), None, 1)[0])
    bound = theory.fedomd_theorem_1(game.prefixes, step=step, **known)
    return fedomd(game, tuned if pace == 1 else step, bound)


def fedomd(game, step, bound):
    """Regret at every prefix, against the best model for that prefix."""
    algorithm = ms.fedomd(step, mirror=game.mirror, sync=game.sync)
    run = ms.simulate(algorithm, game.problem, game.stream, steps=game.steps, dtype="float64")
    assert run.bound(game.prefixes).value == pytest.approx(bound.value)
    regret = run.regret("all")
    return holds(regret.values + regret.gaps, bound.value)


def fedomd_1_and_3(lottery):
    known = {"gap": lottery.gap, "lipschitz": lottery.lipschitz, "divergence": lottery.divergence}
    rule = rules.fedomd_convex(lottery.steps, **known)
    step = float(rule.rate((), None, 1)[0])
    regret = theory.fedomd_theorem_1(np.arange(1, lottery.steps + 1), step=step, **known)
    risk = theory.fedomd_theorem_3(lottery.steps, **lottery.chance, **known)
    return regret_and_risk(lottery, rule, regret, risk)


def fedomd_2_and_3(lottery):
    known = {"gap": lottery.gap, "lipschitz": lottery.lipschitz, "curvature": lottery.curvature}
    rule = rules.fedomd_strongly_convex(lottery.curvature)
    regret = theory.fedomd_theorem_2(np.arange(1, lottery.steps + 1), **known)
    risk = theory.fedomd_theorem_3_strongly_convex(lottery.steps, **lottery.chance, **known)
    return regret_and_risk(lottery, rule, regret, risk)


def regret_and_risk(lottery, step, regret, risk):
    """Regret in every seed; of the average predictors of i.i.d. losses a share may be unlucky."""
    mirror = parts.euclidean(parts.box(-lottery.size, lottery.size))
    run = ms.simulate(
        ms.fedomd(step, mirror=mirror, sync=parts.every(lottery.gap)),
        lottery.problem,
        lottery.stream,
        steps=lottery.steps,
        seeds=RUNS + len(instances.ORDERS),
        dtype="float64",
        measure=["average", "collective"],
    )
    measured = run.regret("all")
    unlucky = RUNS * lottery.risk + 3 * np.sqrt(RUNS * lottery.risk * (1 - lottery.risk))
    excess = np.sort(lottery.excess(run.average_model[:RUNS]))
    return (
        holds(measured.values + measured.gaps, regret.value),
        holds(excess[: RUNS - int(unlucky)], risk.value),
    )


def fedsea_1(drawn):
    """A share of the largest step, or the one at which the bound is smallest."""
    sea, share = drawn
    world = {"clients": sea.clients, "gap": sea.gap, "smoothness": sea.bends.max()}
    if share is None:
        rule = rules.fedsea_convex(sea.steps, **world, **sea.asked)
        world["step"] = float(rule.rate((), None, 1)[0])
    else:
        rule = world["step"] = share * fedsea_limit(sea.bends.max(), sea.gap)
    return fedsea(
        sea, rule, lambda t: theory.fedsea_theorem_1(t, **world, **sea.constants(t, np.mean))
    )


def fedsea_2(drawn):
    """The rule's shift, the least that is allowed, or a longer one."""
    sea, more = drawn
    bent = {"smoothness": sea.bends.max(), "curvature": sea.curvature, "gap": sea.gap}
    shift = theory.fedsea_shift(**bent) + more
    rule = (
        parts.inverse_time(sea.curvature, shift) if more else rules.fedsea_strongly_convex(**bent)
    )
    world = {"clients": sea.clients, "shift": shift, **bent}
    return fedsea(
        sea, rule, lambda t: theory.fedsea_theorem_2(t, **world, **sea.constants(t, np.max))
    )


def fedsea(sea, step, theorem):
    """Where the losses are bent alike in all directions, `run.bound()` measures the constants."""
    run = ms.simulate(
        ms.fedsea(step, period=sea.gap),
        sea.problem,
        sea.stream,
        steps=sea.steps,
        seeds=RUNS,
        dtype="float64",
        measure=["expected"],
    )
    prefixes = some(sea.steps)
    by_hand = [] if sea.condition == 1 else [float(theorem(t)) for t in prefixes]
    regret = run.regret(prefixes, kind="expected").values
    return holds_on_average(regret, by_hand or run.bound(prefixes).value)


def ofediq_1(rows):
    rates = np.asarray(rows.rates)
    step = rows.share * ofedavg_limit(rates.min(), rows.smoothness)
    return ofediq(rows, ms.ofedavg(step, rate=rows.rates), step, theory.ofediq_theorem_1)


def ofediq_2(rows):
    rates, rounding = np.asarray(rows.rates), 0.0
    if rows.levels is not None:
        rounding = theory.rounding_variance(rows.dimension, rows.levels, rows.blocks)
    limit = rates.min() / (4 * rows.smoothness * rows.period)
    step = rows.share * limit / noise_factor(rates, rows.clients, rounding)
    algorithm = ms.ofediq(step, rows.rates, rows.period, rows.levels, rows.blocks)
    more = {"period": rows.period, "rounding": rounding}
    return ofediq(rows, algorithm, step, theory.ofediq_theorem_2, **more)


def ofediq(rows, algorithm, step, theorem, **more):
    """The paper sums over clients; `regret` is a mean over them."""
    prefixes = some(rows.steps, rows.period)
    run = ms.simulate(
        algorithm, rows.problem, rows.stream, steps=rows.steps, seeds=RUNS, dtype="float64"
    )
    world = {"clients": rows.clients, "rate": rows.rates, "step": step}
    world["smoothness"] = rows.smoothness
    bound = [float(theorem(t, **world, **more, **rows.constants(t))) for t in prefixes]
    return holds_on_average(rows.clients * run.regret(prefixes).values, bound)


PACES = st.one_of(st.just(1.0), instances.powers(0.01, 100))
SHARES = st.one_of(st.none(), instances.powers(0.01, 1))
MORE = st.one_of(st.just(0.0), instances.powers(0.1, 100))
THEOREMS = {  # what is checked, on what; how near to its bound some instance must come
    "FedOMD 1": (fedomd_1, st.tuples(instances.games(), PACES), 0.1),
    "FedOMD 1 and 3": (fedomd_1_and_3, instances.lotteries(), (0.1, 0.01)),
    "FedOMD 2 and 3's twin": (fedomd_2_and_3, instances.lotteries(), (0.02, 0.001)),
    "FedSEA 1": (fedsea_1, st.tuples(instances.seas(), SHARES), 0.1),
    "FedSEA 2": (fedsea_2, st.tuples(instances.seas(), MORE), 0.05),
    "OFedIQ 1": (ofediq_1, instances.rows(), 0.4),
    "OFedIQ 2": (ofediq_2, instances.rows(most=5), 0.2),
}


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("theorem", THEOREMS)
def test_no_instance_is_above_its_bound(theorem, count):
    """And some come near it: the property could fail."""
    check, drawn, near = THEOREMS[theorem]
    nearest = []

    @settings(max_examples=count, deadline=None, derandomize=count == 20, database=None)
    @given(drawn)
    def never(instance):
        nearest.append(check(instance))

    never()
    assert len(nearest) >= count
    assert np.all(np.max(nearest, axis=0) >= near)


def test_the_printed_step_condition_of_ofediq_2_is_too_weak():
    """Kwon et al. 2023 print step < p_min / (4 beta R): at L = 100 a constant target breaks the bound."""
    problem = ms.problems.quadratic(1)
    stream = ms.streams.generated(lambda key, t, k: ((), jnp.ones(1)), clients=1)
    step, steps = 0.2, 100
    run = ms.simulate(ms.ofediq(step, period=100), problem, stream, steps=steps, dtype="float64")
    regret, printed = float(run.regret()), 1 / (2 * step)  # |w_1 - w*|^2 / (2 eta): no variance
    assert (regret, printed) == (50.0, 2.5)
    with pytest.raises(BadParameter, match=r"step must be below 0\.0025 "):
        run.bound()
