"""The simulator itself: refusals, debugging, counting, devices."""

import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import mainstem as ms
from mainstem import parts
from mainstem.engines.simulate.chunks import even

PROBLEM = ms.problems.softmax(64, 10)
STREAM = ms.streams.digits(clients=10)
LINE = ms.streams.arrays(np.ones((9, 1)), -np.ones(9), clients=3)


def _refused(match, algorithm=None, problem=PROBLEM, stream=STREAM, **settings):
    with pytest.raises(ms.MainstemError, match=match) as caught:
        ms.simulate(algorithm or ms.fedogd(0.1), problem, stream, **({"steps": 5} | settings))
    assert "\n" not in str(caught.value)


def test_what_does_not_fit_is_refused_in_one_line():
    short = ms.streams.arrays(np.ones((6, 64)), np.zeros(6, np.int32), 2, ms.streams.in_time())
    letters = ms.streams.arrays(np.ones((9, 64)), np.arange(9, dtype=np.int32) * 2, clients=3)
    _refused("steps must be an integer of at least 1, got 0", steps=0)
    _refused("steps must be at most 3, the end of the stream, got 5", stream=short)
    _refused(
        r"wants features of shape \(5,\), the stream has \(64,\)",
        problem=ms.problems.softmax(5, 10),
    )
    _refused("wants labels 0 to 9, row 5 has 10", stream=letters)
    _refused("dtype must be one of float32, float64, got 'half'", dtype="half")
    _refused("measure must be one of .*collective.*, got 'regrets'", measure=["regrets"])
    _refused("the stream knows no expectation", measure=["expected"])
    _refused("one entry for each of 10 clients", ms.ofediq(0.1, rate=[0.5, 0.5]))
    _refused(
        "count must be at most the 10 clients, got 11",
        ms.fedomd(0.1, participation=parts.exactly(11)),
    )
    _refused(
        "cover 5 steps of 10 clients", ms.fedomd(0.1, participation=parts.given(np.ones((3, 10))))
    )
    _refused("blocks must be at most the 650 parameters", ms.ofediq(0.1, levels=3, blocks=651))
    _refused("count must be at most the 650 parameters", ms.fedomd(0.1, codec=parts.top_k(1000)))
    _refused("one entry for each of 10 clients", network=ms.network(up=[1, 2]))
    _refused("seeds must name at least one seed", seeds=[])
    box = ms.fedomd(0.1, mirror=parts.euclidean(parts.box(-1, 1)))
    target = ms.problems.quadratic(1, low=-3, high=3)
    _refused(
        r"projects on the box \[-1, 1\], the problem is on the box \[-3, 3\]",
        box,
        problem=target,
        stream=ms.streams.alternating(4),
    )
    half = ms.problems.linear(1, domain=parts.box(0, np.inf))
    _refused(r"the problem is on the box \[0, inf\]", box, problem=half, stream=LINE)
    _refused("algorithm must be an algorithm such as", "fedogd")


def test_a_half_open_domain_is_one():
    """The best model is searched in it, and it is not equal to another domain."""
    box = parts.box(0, np.inf)
    run = ms.simulate(ms.fedogd(0.1), ms.problems.linear(1, domain=box), LINE, steps=5)
    assert run.domain == box
    assert run.regret().statement.startswith("best in the box [0, inf]")
    assert run.regret().params.min() >= 0


@pytest.mark.slow
def test_debug_names_the_step_and_the_client():
    def sample(key, t, k):
        broken = (t == 2) & (k == 1)
        return jnp.where(broken, jnp.nan, 1.0) * jnp.ones(3), jnp.float32(1)

    stream, problem = ms.streams.generated(sample, clients=3), ms.problems.linear(3)
    with pytest.raises(ms.MainstemError, match="step 2, client 1: its loss is nan"):
        ms.simulate(ms.fedogd(0.1), problem, stream, steps=4, debug=True)


@pytest.mark.slow
def test_debug_mode_gives_the_same_run():
    algorithm = ms.ofediq(0.1, rate=0.5, period=2)
    settings = {"steps": 7, "dtype": "float64"}
    one = ms.simulate(algorithm, PROBLEM, STREAM, debug=True, **settings)
    other = ms.simulate(algorithm, PROBLEM, STREAM, **settings)
    for name in other.columns:
        assert np.allclose(one.trace[name], other.trace[name], rtol=0, atol=1e-12)


def test_bits_are_messages_times_their_price():
    algorithm = ms.ofediq(0.1, rate=0.5, period=3, levels=3, blocks=13)
    run = ms.simulate(algorithm, PROBLEM, STREAM, steps=20)
    uploads = run.column("uploads")
    assert set(np.flatnonzero(uploads) + 1) <= set(range(3, 21, 3))
    price = 32 * 13 + 650 * (1 + 2)
    assert np.array_equal(run.uplink_bits, np.cumsum(uploads) * price)
    assert np.array_equal(run.uplink_bytes, np.cumsum(uploads) * algorithm.codec.nbytes(650, 32))
    downloads = np.where(np.arange(1, 21) % 3 == 0, 10, 0)
    assert np.array_equal(run.downlink_bits, np.cumsum(downloads) * 32 * 650)
    assert run.uplink_saving == pytest.approx(1 - uploads.sum() * price / (20 * 10 * 32 * 650))


def test_float64_counts_64_bits():
    run = ms.simulate(ms.fedogd(0.1), PROBLEM, STREAM, steps=2, dtype="float64")
    assert run.uplink_bits[-1] == 2 * 10 * 64 * 650


def test_a_cohort_never_drops_a_participant():
    """At one sync most clients participate, at the others hardly any: all must count."""
    sampled = np.zeros((9, 10), bool)
    sampled[4, :7] = True
    sampled[7, 3] = True
    algorithm = ms.fedogd(0.1, participation=parts.given(sampled))
    settings = {"steps": 9, "dtype": "float64"}
    fast = ms.simulate(algorithm, PROBLEM, STREAM, **settings)
    plain = ms.simulate(algorithm, PROBLEM, STREAM, plain=True, **settings)
    assert np.array_equal(fast.column("uploads"), sampled.sum(axis=1))
    assert np.allclose(fast.loss, plain.loss, rtol=0, atol=1e-12)


LARGER = [pytest.param(clients, marks=pytest.mark.slow) for clients in (60, 600)]


@pytest.mark.parametrize(
    "clients", [2, *LARGER]
)  # rows of many steps at once: of all, of some, of none
@pytest.mark.parametrize(
    "algorithm",
    [
        ms.independent(parts.adagrad(0.3)),
        ms.fedogd(0.1, sync=parts.never()),
        ms.fedogd(0.1, sync=parts.never(), codec=parts.top_k(1)),  # it remembers, and never sends
        ms.fedogd(0.1, sync=parts.every(3)),
        ms.ofediq(0.1, rate=0.5, period=2, levels=3),
        ms.fedomd(0.1, sync=parts.every(4), participation=parts.bernoulli(0.5)),
    ],
    ids=repr,
)
def test_all_forms_of_the_fast_path_are_the_plain_path(algorithm, clients):
    """In chunks that may end between two syncs."""
    draw = np.random.default_rng(0)
    stream = ms.streams.arrays(draw.normal(size=(600, 3)), draw.integers(0, 2, 600), clients)
    problem = ms.problems.logistic(3, ridge=0.1)
    settings = {"steps": 23, "dtype": "float64", "measure": ["collective", "consensus"]}
    plain = ms.simulate(algorithm, problem, stream, plain=True, **settings)
    fast = ms.simulate(algorithm, problem, stream, chunk=5, **settings)
    for name in (*settings["measure"], "loss", "uploads", "downloads"):
        assert np.allclose(fast.column(name), plain.column(name), rtol=0, atol=1e-12), name
    assert np.allclose(fast.model, plain.model, rtol=0, atol=1e-12)


DEVICES = """
import sys, numpy as np, jax, mainstem as ms
assert jax.device_count() == 4
problem, stream = ms.problems.softmax(64, 10), ms.streams.digits(clients=21)
sea = ms.streams.sea_quadratic(clients=21, dimension=3)
quadratic = ms.problems.quadratic(3)
cases = [
    (ms.fedogd(0.3), problem, stream, {}),
    (ms.ofediq(0.3, rate=0.3, levels=3, blocks=5), problem, stream, {}),
    (ms.fedomd(0.1, sync=ms.parts.every(4)), problem, stream, {"seeds": 2}),
    (ms.fedomd(0.1, sync=ms.parts.every(4)), problem, stream, {"seeds": 4}),
    (ms.fedsea(0.1, period=3), quadratic, sea, {"measure": ["expected", "collective"]}),
    (ms.fedomd(0.1, collect=ms.parts.median()), quadratic, sea, {"network": ms.network(up=2, down=1)}),
]
for algorithm, problem, stream, more in (cases[int(n)] for n in sys.argv[1:]):
    runs = [
        ms.simulate(algorithm, problem, stream, steps=11, dtype="float64", devices=n, **more)
        for n in (None, 4)
    ]
    for name in runs[0].columns:
        one, four = (run.trace[name] for run in runs)
        assert np.allclose(one, four, rtol=0, atol=1e-10), (algorithm, name)
"""


@pytest.mark.parametrize(
    "cases", ["1", pytest.param("02345", marks=pytest.mark.slow)], ids=["quick", "rest"]
)
def test_clients_spread_over_four_devices_give_the_same_run(cases):
    flags = "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0"
    done = subprocess.run(
        [sys.executable, "-c", DEVICES, *cases],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_stretches_are_even_where_they_can_be():
    for total in (1, 7, 60, 97, 1000):
        for most in (1, 10, 64):
            sizes = even(total, most)
            assert sum(sizes) == total
            assert max(sizes) <= most
            assert len(set(sizes)) <= 2


def test_the_factory_that_was_called_is_the_one_that_is_named():
    for build, message in [
        (lambda: ms.fedogd(-1), "fedogd: step must be above 0, got -1"),
        (lambda: ms.ofedavg(0.1, rate=2), "ofedavg: rate must lie in"),
        (lambda: ms.ofediq(0.1, rate=2), "ofediq: rate must lie in"),
        (
            lambda: ms.ofediq(0.1, levels=3, blocks=-3),
            "ofediq: blocks must be an integer of at least 1, got -3",
        ),
        (lambda: ms.ofediq(0.1, blocks=3), "ofediq: blocks must be left out where levels is"),
        (lambda: ms.fedsea(0), "fedsea: step must be above 0"),
        (lambda: ms.fedomd(0.1, sync=parts.constant(1)), "fedomd: sync must be a sync such as"),
        (lambda: ms.fedomd(0.1, mirror=parts.box(0, 1)), "fedomd: mirror must be a mirror"),
        (lambda: ms.fedomd(0.1, codec="plain"), "fedomd: codec must be a codec such as"),
    ]:
        with pytest.raises(ms.MainstemError, match=message):
            build()


def test_expected_losses_of_another_problem_are_refused():
    _refused(
        "expected losses are those of another problem",
        ms.fedsea(0.1),
        problem=ms.problems.quadratic(1, curvature=4.0),
        stream=ms.streams.alternating(3),
        measure=["expected"],
    )


@pytest.mark.filterwarnings("ignore::mainstem.errors.Diverged")
def test_a_diverged_run_is_refused_as_such():
    stream = ms.streams.arrays(np.ones((9, 3)) * 1e3, np.ones(9), clients=3)
    run = ms.simulate(ms.fedogd(10.0), ms.problems.linear(3), stream, steps=60)
    with pytest.raises(ms.MainstemError, match="regret: the run diverged"):
        run.regret()


def test_wrong_devices_and_checkpoints_are_refused():
    _refused("devices must name at least one device", devices=[])
    _refused("checkpoint must be at least 0", checkpoint=-1)
    _refused("network must be a network such as", network=3)


def test_a_wrong_label_late_in_a_file_is_found_before_the_run(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{'ab'[n % 2]},0.5,{7 if n == 31 else n % 3}" for n in range(40)]
    path.write_text("who,x,label\n" + "\n".join(lines) + "\n")
    stream = ms.streams.csv(str(path), target="label", key="who", classes=True)
    _refused("wants labels 0 to 2, row 31 has 7", problem=ms.problems.softmax(1, 3), stream=stream)
