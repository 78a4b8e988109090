"""Codecs: what arrives, in how many bits and bytes."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem import random
from mainstem.errors import BadData, BadParameter
from mainstem.parts import half, plain, top_k

KEY = random.root(0)
D = 12
CODECS = {"plain": plain(), "half": half(), "top_k": top_k(5)}


def leaves(code):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(code)]


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pack_unpack_is_exact_and_as_long_as_promised(name, dtype):
    codec, word = CODECS[name], 8 * np.dtype(dtype).itemsize
    with jax.enable_x64(dtype == "float64"):
        body = jnp.asarray(np.random.default_rng(0).normal(size=D).astype(dtype))
        code = codec.encode(body, KEY)
        data = codec.pack(code)
        again = codec.unpack(data, D, np.dtype(dtype))
        for sent, got in zip(leaves(code), leaves(again), strict=True):
            assert sent.dtype == got.dtype
            np.testing.assert_array_equal(sent, got)
        decoded = codec.decode(again, D)
        np.testing.assert_array_equal(decoded, codec.decode(code, D))
    assert decoded.dtype == dtype
    assert decoded.shape == (D,)
    assert len(data) == codec.nbytes(D, word)
    assert codec.bits(D, word) <= 8 * len(data)


@pytest.mark.parametrize("word", [32, 64])
def test_bits_are_the_formulas(word):
    assert plain().bits(D, word) == word * D
    assert half().bits(D, word) == 16 * D
    assert top_k(5).bits(D, word) == pytest.approx(5 * (word + math.log2(D)))


def test_plain_changes_nothing_and_is_declared_exact():
    body = np.random.default_rng(0).normal(size=D).astype(np.float32)
    np.testing.assert_array_equal(plain().decode(plain().encode(body, KEY), D), body)
    assert plain().linear
    assert not half().linear
    assert not top_k(5).linear


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=D, max_size=D))
def test_half_rounds_to_the_nearest_half(body):
    body = np.array(body, np.float32)
    decoded = np.asarray(half().decode(half().encode(jnp.asarray(body), KEY), D))
    # 11 significant bits; below 2**-14, where XLA may flush to zero, an absolute bound
    assert np.all(np.abs(decoded - body) <= np.maximum(2.0**-11 * np.abs(body), 2.0**-14))


def test_half_cuts_what_it_cannot_hold():
    decoded = half().decode(half().encode(jnp.array([1e9, -1e9, 65504.0]), KEY), 3)
    np.testing.assert_array_equal(decoded, [65504, -65504, 65504])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(-3, 3), min_size=D, max_size=D))
def test_top_k_sends_the_largest_and_drops_the_rest(body):
    """Small integers, so that ties are common."""
    body = np.array(body, np.float32)
    positions, values = top_k(5).encode(jnp.asarray(body), KEY)
    positions = np.asarray(positions)
    assert len(set(positions.tolist())) == 5
    np.testing.assert_array_equal(values, body[positions])
    dropped = np.setdiff1d(np.arange(D), positions)
    assert np.abs(body[positions]).min() >= np.abs(body[dropped]).max()
    expected = np.where(np.isin(np.arange(D), positions), body, 0)
    np.testing.assert_array_equal(top_k(5).decode((positions, values), D), expected)


@pytest.mark.parametrize("positions", [[0, 1, 2, 3, D], [0, 1, 2, 3, 3]])
def test_top_k_refuses_places_that_are_not_there_or_come_twice(positions):
    data = top_k(5).pack((np.array(positions), np.ones(5, np.float32)))
    with pytest.raises(BadData, match="different places below 12"):
        top_k(5).unpack(data, D, np.float32)


def test_top_k_of_everything_is_everything():
    body = np.random.default_rng(0).normal(size=D).astype(np.float32)
    codec = top_k(D)
    np.testing.assert_array_equal(codec.decode(codec.encode(jnp.asarray(body), KEY), D), body)


def test_only_top_k_refuses_a_body_and_only_if_it_is_too_short():
    plain().check(1)
    half().check(1)
    top_k(5).check(5)
    with pytest.raises(BadParameter, match="top_k: count must be at most the 4 parameters, got 5"):
        top_k(5).check(4)


def test_half_precision_is_rounded_in_two_steps_on_every_processor():
    numbers = np.random.default_rng(0).normal(size=200_000)
    twice = numbers.astype(np.float32).astype(np.float16)
    assert (twice != numbers.astype(np.float16)).any()
    with jax.enable_x64(True):
        found = jax.jit(lambda x: half().encode(x, None))(numbers)
    np.testing.assert_array_equal(found, twice)
