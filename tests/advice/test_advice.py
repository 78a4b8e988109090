"""Advice: within the budget, in a sensible order, and with steps that are nearly the best."""

import numpy as np
import optax
import pytest

import mainstem as ms
from examples import advice as example
from mainstem import parts
from mainstem.advice.auto_step import Way, best_step, predicted, stable, way_of
from mainstem.advice.pilot import Pilot, run_pilot
from mainstem.base import Codec, constant
from mainstem.spec import name_of
from mainstem.value import value

PILOT = Pilot(
    steps=50,
    clients=100,
    parameters=10,
    mean_smoothness=2.0,
    sample_smoothness=5.0,
    distance=3.0,
    variance=4.0,
    noise=4.0,
    spatial=0.0,
    crowd=0.04,
    at_stake=1e9,
)
RIDGE = ms.problems.linear(5, ridge=0.1, intercept=False), ms.streams.sea_ridge(20)


@pytest.fixture(scope="module")
def digits():
    problem, stream = example.world("digits")
    return problem, stream, ms.advise(problem, stream, budget=0.01, steps=500)


def test_planned_ofediq_is_picked_for_digits_at_one_percent(digits):
    problem, _, advice = digits
    plan = ms.plan(budget=0.01, parameters=problem.parameters)
    name, chosen = advice.best.call()
    assert name == "ofediq"
    assert (chosen["levels"], chosen["blocks"]) == (plan.levels, plan.blocks)
    assert chosen["rate"] == pytest.approx(plan.rate)


def test_rows_are_ranked_and_within_the_budget(digits):
    _, _, advice = digits
    regrets = [row.regret for row in advice.rows]
    assert regrets == sorted(regrets)
    assert all(row.uplink_share <= 0.01 + 1e-9 for row in advice.rows)
    assert {name_of(row.algorithm) for row in advice.rows} == {
        "fedomd",
        "independent",
        "ofedavg",
        "ofediq",
    }
    assert all(row.why and row.parameters.startswith("step=") for row in advice.rows)


@pytest.mark.slow
def test_bits_are_those_of_the_run(digits):
    problem, stream, advice = digits
    for row in advice.rows[:2]:
        run = ms.simulate(row.algorithm, problem, stream, steps=500)
        assert run.uplink_bits[-1] == pytest.approx(row.uplink_bits, rel=0.05)


def test_a_small_model_stays_within_the_budget():
    """One block is the least, which is more than Algorithm 3 counts with."""
    rows = np.random.default_rng(0).normal(size=(500, 3))
    stream = ms.streams.arrays(rows, rows @ [1.0, -1.0, 0.5], clients=50)
    advice = ms.advise(ms.problems.linear(3), stream, budget=0.02, steps=100)
    assert all(row.uplink_share <= 0.02 + 1e-9 for row in advice.rows)


@pytest.mark.slow
def test_all_of_the_uplink_is_for_fedogd():
    problem, stream = example.world("digits", clients=50)
    advice = ms.advise(problem, stream, budget=1.0, steps=200)
    assert name_of(advice.best) == "fedogd"


def test_bounded_domains_get_algorithms_that_project():
    problem = ms.problems.quadratic(3, low=-1, high=1)
    stream = ms.streams.sea_quadratic(20, dimension=3)
    advice = ms.advise(problem, stream, budget=0.2, steps=200)
    assert {name_of(row.algorithm) for row in advice.rows} == {"fedomd", "independent"}
    ms.simulate(advice.best, problem, stream, steps=20)


@pytest.mark.slow
def test_networks_are_ranked_by_noise_without_a_prediction():
    stream = ms.streams.digits(clients=30)
    advice = ms.advise(ms.problems.mlp(64, 10, hidden=(8,)), stream, budget=0.1, steps=50)
    assert name_of(advice.best) == "ofediq"
    assert advice.table()[0]["predicted_regret"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 0}, "budget must be above 0"),
        ({"budget": 1.5}, r"budget must lie in \(0, 1\]"),
        ({"steps": 0}, "steps must be an integer of at least 1"),
        ({"problem": 3}, "problem must be a problem"),
    ],
)
def test_advice_refuses(change, message):
    given = {"problem": ms.problems.softmax(64, 10), "stream": ms.streams.digits(10)}
    with pytest.raises(ms.MainstemError, match=f"advise: {message}"):
        ms.advise(**(given | {"budget": 0.1, "steps": 10} | change))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "order"),
    [
        (1.0, ["fedres_sgd", "independent", "central"]),
        (0.1, ["independent", "fedres_sgd", "central"]),  # batches of ten learn ten times slower
    ],
)
def test_own_parts_rank_fedres_and_its_baselines(budget, order):
    """Half of what there is to know is each client's own: a central model cannot express it."""
    problem, stream = (
        ms.problems.personal(4, 2),
        ms.streams.residuals(20, shared=4, own=2, noise=0.3),
    )
    advice = ms.advise(problem, stream, budget=budget, steps=400)
    assert [name_of(row.algorithm) for row in advice.rows] == order
    runs = [ms.simulate(row.algorithm, problem, stream, steps=400) for row in advice.rows]
    measured = [float(run.regret()) for run in runs]
    assert measured == sorted(measured)
    for run, row in zip(runs, advice.rows, strict=True):
        assert run.uplink_bits[-1] == pytest.approx(row.uplink_bits)


# --- the step -------------------------------------------------------------------------------------


def test_a_crowd_may_go_farther_than_a_lone_client():
    crowd = stable(Way("gradients", 100, 0.0, 1), PILOT)
    few = stable(Way("gradients", 10, 0.0, 1), PILOT)
    rounded = stable(Way("gradients", 10, 3.0, 1), PILOT)
    alone = stable(Way("alone", 1, 0.0, 1), PILOT)
    assert crowd > few > rounded > alone
    assert alone == pytest.approx(1 / (2 * PILOT.sample_smoothness))


def test_without_noise_the_step_is_three_quarters_of_the_limit_of_gradient_descent():
    still = stable(Way("gradients", 1e12, 0.0, 1), PILOT)
    assert still == pytest.approx(0.75 * 2 / PILOT.mean_smoothness)


def test_the_step_balances_start_and_noise_over_long_horizons():
    """d^2 / (2 eta) + eta T v is least at d / sqrt(2 T v)."""
    way, steps = Way("gradients", 100, 0.0, 1), 10**7
    found = best_step(way, PILOT, steps)
    assert found == pytest.approx(3 / np.sqrt(2 * steps * PILOT.crowd), rel=1e-3)
    assert predicted(found, way, PILOT, steps) < predicted(2 * found, way, PILOT, steps)


def test_delays_shorten_the_step():
    way = Way("sums", 10, 0.0, 1)
    assert best_step(way, PILOT, 100, round_trip=5) == best_step(way, PILOT, 100) / 5


@pytest.mark.parametrize(
    ("algorithm", "way"),
    [
        (ms.fedogd(1.0), Way("gradients", 40, 0.0, 1)),
        (ms.ofedavg(1.0, rate=0.25), Way("gradients", 10, 0.0, 1)),
        (ms.ofediq(1.0, levels=2, blocks=10, period=3), Way("gradients", 40, 0.25, 3)),
        (ms.fedomd(1.0, sync=parts.every(7)), Way("models", 40, 0.0, 7)),
        (ms.fedsea(1.0, period=2), Way("models", 40, 0.0, 2)),
        (ms.dynamic_fedavg(1.0, participation=parts.exactly(5)), Way("models", 5, 0.0, 1)),
        (ms.fedres_sgd(1.0), Way("sums", 40, 0.0, 1)),
        (ms.central(1.0), Way("sums", 40, 0.0, 1)),
        (ms.independent(1.0), Way("alone", 1, 0.0, 1)),
        (ms.fedogd(1.0, codec=parts.half()), Way("gradients", 40, 2.0**-22, 1)),
    ],
)
def test_the_way_is_read_off_the_parts(algorithm, way):
    assert way_of(algorithm, clients=40, parameters=10, steps=100) == way


@value
class rounded(Codec):
    """A codec that does not state its error."""

    def encode(self, vector, key):
        return vector.round()

    def decode(self, code, size):
        return code

    def bits(self, size, word):
        return float(word * size)

    def nbytes(self, size, word):
        return word // 8 * size

    def pack(self, code):
        return np.asarray(code).tobytes()

    def unpack(self, data, size, dtype):
        return np.frombuffer(data, dtype, size)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (ms.fedogd(1.0, server=optax.adam(0.1)), "fedogd: .* only of an algorithm that declares"),
        (ms.fedomd(1.0, codec=parts.top_k(4)), r"want an unbiased codec, .* top_k\(count=4\) is"),
        (ms.fedogd(1.0, codec=rounded()), r"want a codec that declares .*, rounded\(\) does not"),
    ],
)
def test_what_is_not_declared_is_not_guessed(algorithm, message):
    with pytest.raises(ms.MainstemError, match=message):
        way_of(algorithm, clients=40, parameters=10, steps=100)


@pytest.mark.parametrize(
    "algorithm",
    [
        ms.ofediq("auto", rate=0.5, levels=3),
        ms.fedomd("auto", sync=parts.every(3)),
        ms.dynamic_fedavg("auto"),
        *(
            pytest.param(algorithm, marks=pytest.mark.slow)
            for algorithm in (
                ms.fedogd("auto"),
                ms.ofedavg("auto", rate=0.3),
                ms.fedsea("auto", period=3),
                ms.independent("auto"),
            )
        ),
    ],
    ids=name_of,
)
def test_auto_learns_with_every_algorithm(algorithm):
    run = ms.simulate(algorithm, *RIDGE, steps=150)
    assert isinstance(run.spec["algorithm"][0]["step"], float)
    assert run.loss[-50:].mean() < 0.8 * run.loss[:5].mean()


@pytest.mark.parametrize(
    ("factory", "network"),
    [
        pytest.param(ms.fedres_sgd, ms.network(up=2, down=3), marks=pytest.mark.slow),
        pytest.param(ms.fedres_sgd, ms.network(), marks=pytest.mark.slow),
        pytest.param(ms.central, ms.network(), marks=pytest.mark.slow),
    ],
)
def test_auto_learns_sums(factory, network):
    problem, stream = ms.problems.personal(4, 2), ms.streams.residuals(10, shared=4, own=2)
    run, still = (
        ms.simulate(factory(step), problem, stream, steps=300, network=network)
        for step in ("auto", 1e-9)
    )
    assert run.loss[-100:].mean() < 0.8 * still.loss[-100:].mean()


def test_auto_with_the_entropy_map_beats_staying():
    better = np.array([0.2, 0.9, 0.9, 0.9])
    raw = ms.streams.generated(lambda key, t, k: ((), constant(better)), clients=5)
    run = ms.simulate(
        ms.fedomd("auto", mirror=parts.entropy()), ms.problems.experts(4), raw, steps=200
    )
    assert run.loss[-1] < 0.3


def test_auto_is_the_same_number_again():
    first, second = (ms.simulate(ms.fedogd("auto"), *RIDGE, steps=20) for _ in range(2))
    assert first.spec == second.spec
    assert np.array_equal(first.loss, second.loss)


def test_auto_is_for_known_algorithms_and_streams():
    mine = ms.fedogd("auto", server=optax.adam(0.1))
    with pytest.raises(ms.MainstemError, match="give a number: only of an algorithm that declares"):
        ms.simulate(mine, *RIDGE, steps=5)
    wanted = "a step-size rule, a schedule or \"auto\", got 'fast'"
    with pytest.raises(ms.MainstemError, match=wanted):
        ms.fedogd("fast")
    bandit = ms.problems.bandit(ms.problems.personal(3, 3), actions=4, period=5)
    world = ms.streams.linear_bandit(3, 4, 3, 3)
    with pytest.raises(ms.MainstemError, match="depends on what was decided"):
        ms.simulate(ms.fedres_sgd("auto"), bandit, world, steps=5)
    with pytest.raises(ms.MainstemError, match="neither euclidean nor entropy"):
        ms.simulate(ms.fedomd("auto", mirror=parts.p_norm(1.5)), *RIDGE, steps=5)


def test_a_pilot_is_short_and_inside_the_stream():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    stream = ms.streams.arrays(rows, rows @ [1.0, 2.0], clients=3, deal=ms.streams.in_time())
    assert run_pilot(ms.problems.linear(2), stream, steps=10**6).steps == 20
    assert run_pilot(ms.problems.linear(2), stream, steps=3).steps == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", example.NAMES)
def test_auto_is_nearly_the_best_of_ten_steps(name, request):
    if name != "digits":
        request.getfixturevalue("filled")
    assert example.main([name])
