"""Specs: what a factory was called with, in what TOML knows."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import tomli_w

import mainstem as ms
from mainstem import algorithms, parts, problems, streams
from mainstem.spec import Spec, plain, table


def test_a_value_remembers_its_call():
    made = parts.quantiser(3, blocks=5)
    assert made.spec.name == "quantiser"
    assert made.spec.arguments == {"levels": 3, "blocks": 5}
    assert repr(made.spec) == "quantiser(levels=3, blocks=5)"


def test_defaults_that_were_not_given_are_not_recorded():
    assert plain(ms.fedogd(step=0.1)) == {"name": "fedogd", "step": 0.1}
    assert plain(parts.everyone()) == {"name": "everyone"}


def test_parts_inside_become_tables():
    algorithm = ms.fedomd(
        parts.inverse_time(2.0, shift=3),
        mirror=parts.euclidean(parts.box(-3, 3)),
        sync=parts.after_steps(range(2, 9, 3)),
        codec=None,
    )
    assert plain(algorithm) == {
        "name": "fedomd",
        "step": {"name": "inverse_time", "sigma": 2.0, "shift": 3},
        "mirror": {"name": "euclidean", "domain": {"name": "box", "low": -3, "high": 3}},
        "sync": {"name": "after_steps", "steps": [2, 5, 8]},
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "none"),
        (True, True),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        ((1, (2.5, "a")), [1, [2.5, "a"]]),
        ({"a": np.array([1, 2]), 3: None}, {"a": [1, 2], "3": "none"}),
        (jnp.arange(3), [0, 1, 2]),
        (np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
        (np.mean, "numpy:mean"),
        (Path("a/b"), "a/b"),
        (range(3), [0, 1, 2]),
    ],
)
def test_plain(value, expected):
    assert plain(value) == expected


def test_a_large_array_is_its_fingerprint():
    large = np.arange(5000.0)
    assert plain(large) == plain(large.copy())
    assert plain(large) != plain(large + 1)
    assert plain(large).startswith("array float64 (5000,) sha256 ")
    assert plain(large[:4096]) == large[:4096].tolist()


def test_every_spec_is_toml():
    values = [
        ms.ofediq(0.1, rate=np.array([0.5, 1.0]), levels=3, blocks=2, collect=parts.median()),
        problems.custom(lambda key: 0, lambda w, x: 0, lambda s, y: 0),
        streams.arrays(np.ones((3, 2)), np.ones(3), clients=1, deal=streams.in_time()),
        parts.given(np.eye(3, dtype=bool)),
    ]
    for value in values:
        assert f'name = "{value.spec.name}"' in tomli_w.dumps(plain(value))


def test_what_carries_a_spec_stays_hashable():
    """Parts are static arguments of compiled functions."""
    assert hash(parts.given(np.eye(3))) is not None
    first, twin = parts.quantiser(3), parts.quantiser(3)
    assert first.spec != twin.spec
    assert plain(first) == plain(twin)


@pytest.mark.parametrize("module", [algorithms, parts, problems, streams])
def test_every_exported_factory_is_recorded(module):
    for name in module.__all__:
        factory = getattr(module, name)
        assert hasattr(factory, "__wrapped__"), name
        assert factory.__doc__, name


def test_table_leaves_out_what_is_none():
    assert table(Spec("f", {"a": None, "b": 1})) == {"name": "f", "b": 1}
