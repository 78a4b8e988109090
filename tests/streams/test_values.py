"""Streams are values: equal to their twins, printed as the call that makes them, numbers as leaves."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import tests
from mainstem import random, streams
from mainstem.base import At, Drawn, Form, Sampler, Stream, cast
from mainstem.errors import MainstemError
from mainstem.streams.deal import Deal
from tests.streams.replayed import replayed

X, Y = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], [0, 1, 1, 0]


def coin(key, t, k):
    return random.normal(key, (2,)), t % 2


def biased(key, t, k, drawn):
    return drawn.each + random.normal(key, (2,)), t % 2


def biases(seed):
    return Drawn(each=np.random.default_rng(seed).normal(size=(2, 2)))


def flat(t, k):
    return Form(jnp.asarray(1.0), jnp.zeros(2), jnp.asarray(0.0))


STREAMS = [
    "alternating(clients=3)",
    "alternating(clients=3, mean=1.0, variance=0.0, dimension=2)",
    f"arrays(features={X}, target={Y}, clients=2)",
    f"arrays(features={X}, target={Y}, clients=2, deal=by_label(alpha=9.0))",
    f"arrays(features={X}, target={Y}, clients=2, deal=by_key(), keys=['b', 'a', 'a', 'b'])",
    "digits(clients=4)",
    "digits(clients=4, deal=in_time())",
    "generated(sample=tests.streams.test_values.coin, clients=2)",
    "generated(sample=tests.streams.test_values.biased, clients=2, steps=9,"
    " expected=tests.streams.test_values.flat, drawn=tests.streams.test_values.biases)",
    "linear_bandit(clients=3, actions=2, shared=2, own=1)",
    "partners()",
    "residuals(clients=3, shared=2, own=1, noise=0.0)",
    "sea_quadratic(clients=3, spatial=0.2, drift='slow')",
    "sea_ridge(clients=3, dimension=2, ridge=0.0, seed=4)",
    "in_batches(stream=alternating(clients=3), size=2)",
    "sometimes(stream=alternating(clients=3), rate=0.5)",
    "sometimes(stream=alternating(clients=2), rate=[0.5, 1.0])",
    f"split(stream=arrays(features={X}, target={Y}, clients=2), shared=[0], own=[1])",
    f"split(stream=arrays(features={X}, target={Y}, clients=2), shared=[0, 1],"
    " own=[[1], [0, 1]], overlap=True)",
    "walking(clients=2, holds=5)",
    "walking(clients=2, holds=[5, 3], drift=0.5, start=[1.0, 0.5])",
]
DEALS = ["evenly()", "by_key()", "by_label(alpha=0.5, seed=2)", "in_time()"]


def made(call):
    return eval(call, {**vars(streams), "tests": tests})


@pytest.mark.parametrize("call", STREAMS + DEALS)
def test_a_value_is_the_call_that_makes_it(call):
    one, twin = made(call), made(call)
    assert repr(one) == call
    for other in (twin, pickle.loads(pickle.dumps(one)), copy.deepcopy(one), one.replace()):
        assert other == one
        assert hash(other) == hash(one)
        assert repr(other) == call
    leaves, tree = jax.tree.flatten(one)
    assert jax.tree.unflatten(tree, leaves) == one


@pytest.mark.parametrize("call", STREAMS)
def test_a_copy_that_has_been_through_a_pickle_gives_the_same_samples(call):
    one = made(call)
    first, again = (replayed(s, 2, seed=5) for s in (one, pickle.loads(pickle.dumps(one))))
    for x, y in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(x, y)


def test_every_exported_stream_is_a_value():
    functions = {"frame", "generated", "hashed", "river"}
    for name in set(streams.__all__) - functions:
        assert issubclass(getattr(streams, name), Stream | Deal), name
    missing = {
        "csv",
        "dataset",
        "frame",
        "hashed",
        "log",
        "parquet",
        "river",
        "tasks",
    }  # they need files or other values, and are tested there
    assert {call.partition("(")[0] for call in STREAMS + DEALS} == set(streams.__all__) - missing


def test_no_key_and_no_deal_reaches_the_device():
    one = streams.arrays(X, Y, deal=streams.by_key(), keys=["b", "a", "a", "b"])
    assert one.clients == 2  # as many as there are keys
    kinds = {leaf.dtype.kind for leaf in jax.tree.leaves(one.device)}
    assert kinds == {"f", "i"}
    wrapped = streams.sometimes(streams.split(one, [0], [1]), rate=0.5)
    assert {np.asarray(leaf).dtype.kind for leaf in jax.tree.leaves(wrapped.device)} == {*"bif"}


@pytest.mark.parametrize(
    ("make", "numbers"),
    [
        (streams.alternating, {"mean": 3.0, "variance": 0.5}),
        (streams.sea_quadratic, dict.fromkeys(("noise", "spatial", "temporal", "distance"), 0.3)),
        (streams.sea_ridge, dict.fromkeys(("noise", "spatial", "temporal", "ridge"), 0.3)),
    ],
)
def test_one_program_serves_all_numbers(make, numbers):
    """They are leaves: another number is the same structure, and no reason to compile again."""
    traced = []

    @jax.jit
    def both(device, t, k):
        traced.append(1)
        at = At(t, k, random.fold(random.root(0), t, k))
        return device.sample((), at, None), device.expected(t, k)

    for stream in (make(clients=3), make(clients=3, **numbers)):
        with jax.enable_x64(True):
            got = both(cast(stream.device, "float64"), 2, 1)
            at = At(2, 1, random.fold(random.root(0), 2, 1))
            wanted = stream.sample((), at, None), stream.expected(2, 1)
        for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)
    assert len(traced) == 1


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_copy_of_a_file_reads_it_again(kind, tmp_path):
    table = pd.DataFrame({"zone": [*"abab"], "heat": [1.0, 2.0, 3.0, 4.0], "load": [0.0] * 4})
    path = tmp_path / f"data.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path, index=False)
    make = getattr(streams, kind)
    one = make(path, "load", "zone", features=["heat"])
    call = f"{kind}(path='{path}', target='load', key='zone', features=['heat'], "
    assert repr(one) == f"{call}checksum='{one.checksum}')"
    again = pickle.loads(pickle.dumps(one))
    assert again == one == make(str(path), target="load", key="zone", features=("heat",))
    assert hash(again) == hash(one)
    assert (again.clients, again.steps) == (one.clients, one.steps) == (2, 2)
    np.testing.assert_array_equal(again.chunk(0, 1, 2)[0], one.chunk(0, 1, 2)[0])
    assert jax.tree.leaves(one) == jax.tree.leaves(one.device) == []
    assert isinstance(one.device, Sampler)


def test_a_file_that_has_changed_is_another_value(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("heat,load\n1,2\n3,4\n")
    one = streams.csv(path, "load")
    path.write_text("heat,load\n1,2\n3,5\n")
    assert streams.csv(path, "load") != one
    with pytest.raises(MainstemError, match="has changed since"):
        streams.csv(path, "load", checksum=one.checksum)
