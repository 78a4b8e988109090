"""The quantiser against Definition 2 as a loop, its moments, and its bytes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem import random
from mainstem.errors import BadParameter
from mainstem.parts import quantiser
from mainstem.parts.quantiser import Quantised
from mainstem.theory import rounding_variance
from tests.reference.quantiser import bits, block_sizes, quantise
from tests.reference.quantiser import variance_factor as paper_variance_factor

LEVELS = (1, 3, 17, 255)
CASES = [  # (levels, D, blocks)
    (3, 1, 1), (1, 7, 1), (255, 7, 3), (17, 10, 4),
    (3, 12, 12), (3, 64, 8), (17, 65, 8), (1, 65, 64),
]  # fmt: skip
ALL_BUT_ONE = np.float32(1 - 2**-24)  # the largest uniform


@functools.cache
def compiled(levels, size, blocks):
    """(body, key) -> the draws, the code, what it decodes to."""
    codec = quantiser(levels, blocks)

    def run(body, key):
        code = codec.encode(body, key)
        return random.uniform(key, (size,), body.dtype), code, codec.decode(code, size)

    return jax.jit(run)


@functools.cache
def many(levels, size, blocks):
    """(body, words) -> what arrives, for each word folded into a key."""
    codec = quantiser(levels, blocks)

    def run(body, word):
        return codec.decode(codec.encode(body, random.fold(random.root(5), word)), size)

    return jax.jit(jax.vmap(run, (None, 0)))


def block_norms(v, blocks):
    cuts = np.cumsum(block_sizes(len(v), blocks))[:-1]
    norms = [np.linalg.norm(part) for part in np.split(v, cuts)]
    return np.repeat(norms, block_sizes(len(v), blocks))


def draw_vector(seed, size, blocks, scale):
    rng = np.random.default_rng(seed)
    v = scale * rng.normal(size=size)
    v[rng.random(size) < 0.1] = 0.0
    cuts = np.cumsum(block_sizes(size, blocks))[:-1]
    for part in np.split(v, cuts)[:: rng.integers(1, 4)]:
        part[:] *= rng.integers(0, 2)  # some blocks are zero
    return v


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    case=st.sampled_from(CASES),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_equals_the_loop_of_definition_2(seed, case, scale):
    levels, size, blocks = case
    v = draw_vector(seed, size, blocks, scale)
    with jax.enable_x64(True):
        uniform, _, actual = jax.device_get(compiled(*case)(v, random.root(seed)))
    expected = quantise(v, levels, blocks, uniform)
    norms = block_norms(v, blocks)
    argument = levels * np.abs(v) / np.where(norms > 0, norms, 1) + uniform
    clear = np.abs(argument - np.round(argument)) > 1e-9  # elsewhere rounding may pick a neighbour
    np.testing.assert_allclose(actual[clear], expected[clear], rtol=1e-12, atol=0)
    assert np.all(np.abs(actual - expected) <= norms / levels * (1 + 1e-12))
    assert actual.dtype == np.float64


@pytest.mark.parametrize(
    ("levels", "size", "blocks"),
    [(1, 1, 1), (1, 37, 1), (1, 37, 5), (3, 16, 16), (3, 37, 36), (17, 37, 2), (255, 16, 3)],
)
@pytest.mark.parametrize("even", [True, False], ids=["equal entries", "normal entries"])
def test_unbiased_and_within_its_variance(levels, size, blocks, even):
    """Equal entries are the worst case of s = 1; an entry's variance is (|B| / s)^2 f (1 - f)."""
    draws = 4000
    v = np.random.default_rng(size).normal(size=size)
    v = np.sign(v) if even else v
    norms = block_norms(v, blocks)
    fraction = np.modf(levels * np.abs(v) / norms)[0]
    variance = (norms / levels) ** 2 * fraction * (1 - fraction)
    with jax.enable_x64(True):
        out = np.asarray(many(levels, size, blocks)(v, np.arange(draws)))
    error = np.abs(out.mean(axis=0) - v)
    assert np.all(error <= 5 * np.sqrt(variance / draws) + 2e-6 * norms)
    total = np.mean(np.sum((out - v) ** 2, axis=1))
    bound = rounding_variance(size, levels, blocks) * np.sum(v**2)
    assert variance.sum() <= bound
    spread = np.std(np.sum((out - v) ** 2, axis=1)) / np.sqrt(draws)
    assert abs(total - variance.sum()) <= 5 * spread + 1e-5 * np.sum(v**2)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_entry_as_large_as_its_block_never_exceeds_the_top_level(levels, dtype, monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda key, shape, dtype: jnp.full(shape, ALL_BUT_ONE))
    v = np.random.default_rng(0).normal(size=512).astype(dtype)
    with jax.enable_x64(dtype is np.float64):
        code = quantiser(levels, 512).encode(jnp.asarray(v), random.root(0))
        back = quantiser(levels, 512).decode(code, 512)
    np.testing.assert_array_equal(np.abs(code.levels), levels)
    np.testing.assert_allclose(back, v, rtol=1e-6)


def test_zero_stays_zero_whatever_is_drawn(monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda key, shape, dtype: jnp.full(shape, ALL_BUT_ONE))
    codec = quantiser(3, 2)
    code = codec.encode(jnp.array([0.0, 0.0, 0.0, -3.0, 4.0]), random.root(0))
    np.testing.assert_array_equal(code.norms, [0, 5])
    np.testing.assert_array_equal(codec.decode(code, 5)[:3], [0, 0, 0])


def test_float32_codes_stay_float32_and_within_one_level():
    v = np.random.default_rng(1).normal(size=65).astype(np.float32)
    _, code, back = compiled(17, 65, 8)(v, random.root(3))
    assert code.norms.dtype == back.dtype == np.float32
    assert np.all(np.abs(back - v) <= block_norms(v, 8) / 17 * (1 + 1e-5))


def test_scaling_the_body_scales_what_arrives():
    """Q(c x) = c Q(x), which is why OFedIQ may divide by p after the quantiser."""
    v = np.random.default_rng(2).normal(size=64).astype(np.float32)
    *_, once = compiled(3, 64, 8)(v, random.root(9))
    *_, fourfold = compiled(3, 64, 8)(4 * v, random.root(9))
    np.testing.assert_array_equal(4 * np.asarray(once), fourfold)


codes = st.tuples(
    st.sampled_from([*LEVELS, 2, 300, 2**16 - 1]),
    st.integers(1, 200),
    st.integers(0, 2**32 - 1),
    st.sampled_from([np.float32, np.float64]),
)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(codes)
def test_pack_unpack_is_exact(case):
    levels, size, seed, dtype = case
    rng = np.random.default_rng(seed)
    blocks = int(rng.integers(1, size + 1))
    sent = Quantised(
        rng.normal(size=blocks).astype(dtype) ** 2,
        rng.integers(-levels, levels, size, dtype=np.int32, endpoint=True),
    )
    codec = quantiser(levels, blocks)
    data = codec.pack(sent)
    got = codec.unpack(data, size, dtype)
    np.testing.assert_array_equal(got.norms, sent.norms)
    np.testing.assert_array_equal(got.levels, sent.levels)
    assert got.norms.dtype == dtype
    assert got.levels.dtype == np.int32
    assert codec.nbytes(size, 8 * np.dtype(dtype).itemsize) == len(data)


def test_what_is_unpacked_decodes_to_what_was_encoded():
    codec = quantiser(17, 8)
    with jax.enable_x64(True):
        _, code, decoded = compiled(17, 65, 8)(draw_vector(4, 65, 8, 1.0), random.root(1))
        again = codec.unpack(codec.pack(code), 65, np.float64)
        np.testing.assert_array_equal(codec.decode(again, 65), decoded)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize(
    ("size", "blocks"), [(10_000, 1), (34_826, 777), (34_826, 1134), (100_003, 99)]
)
def test_packed_size_is_that_of_the_formula(levels, size, blocks):
    """Kwon et al. 2023, eq. (13): 32 b + D (1 + log2(s + 1)) bits, within 3 % and 64 bytes."""
    rng = np.random.default_rng(0)
    code = Quantised(
        np.ones(blocks, np.float32), rng.integers(-levels, levels + 1, size, dtype=np.int32)
    )
    codec = quantiser(levels, blocks)
    formula = bits(size, levels, blocks) / 8
    assert codec.bits(size, 32) == bits(size, levels, blocks)
    assert codec.bits(size, 64) == bits(size, levels, blocks, word=64)
    assert formula - 1 <= len(codec.pack(code)) <= 1.03 * formula + 64


@pytest.mark.parametrize(("size", "blocks"), [(10, 3), (100, 1), (12, 12)])
@pytest.mark.parametrize("levels", LEVELS)
def test_variance_factor_is_the_papers(levels, size, blocks):
    expected = paper_variance_factor(size, levels, blocks)
    assert rounding_variance(size, levels, blocks) == expected


def test_more_blocks_than_numbers_are_refused():
    quantiser(3, 5).check(5)
    with pytest.raises(BadParameter, match="quantiser: blocks must be at most the 5 parameters"):
        quantiser(3, 6).check(5)


@pytest.mark.parametrize("size", [1e-36, 1e-30, 1e-20, 1e20, 1e30, 1e36])
@pytest.mark.parametrize("blocks", [1, 3])
def test_messages_of_any_size_are_encoded_alike(size, blocks):
    codec, key = quantiser(4, blocks), random.root(3)
    usual = np.random.default_rng(0).normal(size=20).astype(np.float32)
    scale = np.float32(2.0 ** np.round(np.log2(size)))  # exact, so that the draws are the same
    expected = codec.decode(codec.encode(jnp.asarray(usual), key), 20)
    found = codec.decode(codec.encode(jnp.asarray(usual * scale), key), 20)
    assert np.isfinite(found).all()
    assert np.allclose(found / scale, expected, rtol=1e-6, atol=0)
    assert np.any(found != 0)
