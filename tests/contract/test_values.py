"""Every exported part, problem and generated stream is data; each is here by being exported."""

import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import mainstem as ms
from mainstem import algorithms, parts, problems, random, replay, streams
from mainstem.base import (
    Algorithm,
    Arrivals,
    Codec,
    Collect,
    Domain,
    Flat,
    Mirror,
    Optimizer,
    Participation,
    Problem,
    Step,
    Stream,
)
from mainstem.errors import BadParameter
from mainstem.parts.missing import Missing
from mainstem.testing import check_value
from mainstem.testing.compilations import counted
from mainstem.testing.worlds import _losses
from tests.contract.cases import CASES

ROWS = {"features": np.eye(4, 3), "target": np.arange(4) % 2, "clients": 2}
LINEAR = problems.linear(3, ridge=0.1)

MADE = {
    "parts": [
        parts.adagrad(0.5, floor=1e-6),
        parts.after_steps([4, 1]),
        parts.auto(),
        parts.bernoulli([0.5, 0.25, 1.0]),
        parts.box(-1, 1.0000001),
        parts.clipped(2.0, of=parts.median()),
        parts.constant(0.1),
        parts.each(),
        parts.entropy(),
        parts.euclidean(parts.l2_ball(2)),
        parts.every(3, offset=1),
        parts.everyone(),
        parts.everything(),
        parts.exactly(2),
        parts.given(np.eye(3, dtype=bool)),
        parts.half(),
        parts.inverse_sqrt(0.5),
        parts.inverse_time(2.0, shift=3),
        parts.l1_ball(2),
        parts.error_feedback(parts.top_k(2)),
        parts.l2_ball(2),
        parts.last_value(1.5, indicator=True),
        parts.median(),
        parts.network(up=[1, 2], down=3),
        parts.never(),
        parts.optimizer("adam", learning_rate=0.1, b1=0.8, nesterov=True),
        parts.p_ball(1.5, radius=2),
        parts.p_norm(1.5, parts.p_ball(1.5, 2)),
        parts.plain(),
        parts.quantiser(3, blocks=2),
        parts.running_mean(1.5),
        parts.schedule(optax.safe_int32_increment),
        parts.simplex(),
        parts.standardised(),
        parts.top_k(2),
        parts.total(),
        parts.trimmed_mean(0.2),
    ],
    "problems": [
        problems.bandit(LINEAR, 4, epsilon=0.5),
        problems.batched(LINEAR),
        problems.cnn(side=10),
        problems.custom(jax.random.normal, optax.l2_loss, optax.l2_loss, ridge=0.5),
        problems.experts(4),
        LINEAR,
        problems.logistic(3, ridge=0.1, intercept=False),
        problems.mlp(3, classes=2, hidden=[4], ridge=0.1),
        problems.personal(2, 1, "logistic", classes=2),
        problems.quadratic(2, curvature=2.0, low=-1, high=3),
        problems.random_features(3, count=5, bandwidth=2.0),
        problems.replay(LINEAR, 4, epsilon=0.25),
        problems.softmax(3, 4, ridge=0.1, domain=parts.l2_ball(2)),
    ],
    "streams": [
        streams.alternating(3, mean=1.0, dimension=2),
        streams.arrays(**ROWS),
        streams.arrays(**ROWS, deal=streams.by_label(50.0, seed=1)),
        streams.arrays(**(ROWS | {"clients": None}), deal=streams.by_key(), keys=list("abab")),
        streams.arrays(**ROWS, deal=streams.in_time()),
        streams.digits(clients=10, deal=streams.evenly()),
        streams.generated(_losses, clients=2),
        streams.linear_bandit(2, actions=3, shared=2, own=1),
        streams.partners(),
        streams.residuals(3, shared=2, own=1, noise=0.5),
        streams.sea_quadratic(3, spatial=0.5, drift="slow"),
        streams.sea_ridge(3, temporal=0.5, drift="random"),
        streams.in_batches(streams.alternating(3), size=2),
        streams.sometimes(streams.alternating(3), rate=[1.0, 0.5, 0.1]),
        streams.split(streams.arrays(**ROWS), shared=[0], own=[[1], [1, 2]]),
        streams.walking(3, holds=[3, 4, 5], drift=0.1),
    ],
}
FROM_FILES = {
    "frame",
    "hashed",
    "river",
    "csv",
    "parquet",
    "dataset",
    "log",
    "tasks",
}  # tests/streams has these
WHERE = {"parts": parts, "problems": problems, "streams": streams}
ALL = [(home, made) for home, values in MADE.items() for made in values]
NAMED = {name: getattr(module, name) for module in WHERE.values() for name in module.__all__}
EVAL = {"jax": jax, **NAMED, "optax": optax, "mainstem": ms}


@pytest.mark.parametrize("home", MADE)
def test_every_exported_name_is_here(home):
    offered = set(WHERE[home].__all__) - FROM_FILES
    text = " ".join(map(repr, MADE[home]))
    assert {name for name in offered if f"{name}(" not in text} <= {"constant", "auto", "evenly"}


@pytest.mark.parametrize(("home", "made"), ALL, ids=lambda it: repr(it)[:60])
def test_it_is_data(home, made):
    check_value(made)


@pytest.mark.parametrize(("home", "made"), ALL, ids=lambda it: repr(it)[:60])
def test_it_prints_as_the_call_that_makes_it(home, made):
    text = repr(made)
    assert "\n" not in text
    assert eval(text, dict(EVAL)) == made


def test_all_survive_another_process():
    """Pickled, read and printed by a fresh interpreter, and read again here."""
    values = [made for _, made in ALL] + [
        case.algorithm for name, case in CASES.items() if name != "fedogd schedule"
    ]
    code = (
        "import pickle, sys\n"
        "values = pickle.load(sys.stdin.buffer)\n"
        "pickle.dump((values, [repr(each) for each in values]), sys.stdout.buffer)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(values), capture_output=True, check=True
    )
    again, printed = pickle.loads(done.stdout)
    assert again == values
    assert [hash(each) for each in again] == [hash(each) for each in values]
    assert printed == [repr(each) for each in values]


# --- numbers are traced ---------------------------------------------------------------------------

KEY = random.root(1)
VECTOR = np.linspace(0.1, 0.9, 3)


def used(made):
    """Something that a compiled program asks of a value."""
    if isinstance(made, Domain):
        return made.project(VECTOR)
    if isinstance(made, Mirror):
        return made.step(VECTOR, VECTOR, 0.1)
    if isinstance(made, Step):
        return made.rate(made.init(VECTOR), VECTOR, 3)[0]
    if isinstance(made, Participation):
        return made.heard(KEY, 2, 3)
    if isinstance(made, Codec):
        return made.decode(made.encode(jnp.asarray(VECTOR), KEY), 3)
    if isinstance(made, Collect):
        got = Arrivals(jnp.ones((2, 3)), jnp.ones(2), jnp.arange(2), jnp.ones(2), jnp.ones((2, 3)))
        return made.gather(got, 2).sum
    if isinstance(made, Optimizer):
        return made.update(VECTOR, made.init(VECTOR), VECTOR)[0]
    if isinstance(made, Missing):
        return made.start  # the rest is done on the host
    if isinstance(made, Problem):
        first = Flat(made).init(KEY)
        return made.domain.project(first), made.curvature
    assert isinstance(made, Stream)
    return None


def numbers_of(made):
    """The first float among the leaves, or None."""
    leaves = jax.tree.leaves(made)
    floats = [n for n, leaf in enumerate(leaves) if np.asarray(leaf).dtype.kind == "f"]
    return floats[0] if floats else None


NUMBERED = [made for _, made in ALL if numbers_of(made) is not None]


@pytest.mark.parametrize("made", NUMBERED, ids=lambda it: repr(it)[:60])
def test_three_values_that_differ_in_a_number_compile_once(made):
    leaves, tree = jax.tree.flatten(made)
    position = numbers_of(made)

    def other(factor):
        changed = [leaf * factor if n == position else leaf for n, leaf in enumerate(leaves)]
        return jax.tree.unflatten(tree, changed)

    run = _sampled if isinstance(made, Stream) else compiled
    jax.block_until_ready(run(made))
    with counted() as more:
        for factor in (0.99, 0.98):
            jax.block_until_ready(run(other(factor)))
    assert more.compiled == 0


@jax.jit
def compiled(made):
    return used(made)


def _sampled(stream):
    return samples(*replay.given(stream, 0, 1, 1, "float32"), clients=stream.clients)


def _samples(sampler, drawn, pieces, clients):
    head = jax.tree.map(lambda x: x[0], pieces)
    return replay.arrived(sampler, KEY, drawn, head, jnp.int32(1), jnp.arange(clients))


samples = jax.jit(_samples, static_argnames="clients")


def test_a_stack_of_values_is_a_sweep():
    """Under vmap, one program runs three step sizes."""
    steps = [0.1, 0.2, 0.4]
    many = jax.tree.map(lambda *x: jnp.stack(x), *[ms.fedogd(step) for step in steps])
    rates = jax.vmap(lambda algorithm: algorithm.step.rate((), None, 1)[0])(many)
    np.testing.assert_allclose(rates, steps, rtol=1e-6)


def test_no_value_is_built_on_another():
    for module in (*WHERE.values(), algorithms):
        for name in module.__all__:
            cls = getattr(module, name)
            if isinstance(cls, type):
                finals = [base for base in cls.__mro__ if "__final_value__" in vars(base)]
                assert finals == [cls], name
                with pytest.raises(TypeError, match="is final"):
                    type("Other", (cls,), {})


def test_equal_values_are_one_value():
    assert len({ms.fedogd(0.1), ms.ofediq(0.1), ms.fedogd(parts.constant(0.1))}) == 1
    assert ms.fedomd(0.1) != ms.fedsea(0.1)  # the same steps, another paper's theorems
    assert parts.box(-1, 1) != parts.box(-1, 1.0000001)
    assert isinstance(ms.fedogd(0.1), Algorithm)


def test_a_value_can_be_made_of_traced_numbers():
    """As a part that a compiled method assembles: what was checked outside is not checked again."""
    made = jax.jit(lambda radius: parts.l2_ball(radius).project(jnp.array([3.0, 4.0])))(1.0)
    np.testing.assert_allclose(made, [0.6, 0.8], rtol=1e-6)
    assert parts.l2_ball(jnp.float32(2.0)) == parts.l2_ball(2.0)
    with pytest.raises(BadParameter, match="radius must be above 0"):
        parts.l2_ball(jnp.float32(-2.0))
