"""Parts of the peers in bare JAX: draws by a hash of counters, and batches of cohorts of equal size."""

import jax
import jax.numpy as jnp
import numpy as np

GOLDEN = np.uint32(0x9E3779B9)


def mix(word):
    """Spreads the bits of 32-bit words (Wellons' lowbias32)."""
    word = (word ^ (word >> 16)) * np.uint32(0x7FEB352D)
    word = (word ^ (word >> 15)) * np.uint32(0x846CA68B)
    return word ^ (word >> 16)


def bits(*counters):
    """32-bit words from counters that broadcast."""
    word = jnp.uint32(0)
    for counter in counters:
        word = mix(word + jnp.asarray(counter).astype(jnp.uint32) * GOLDEN + GOLDEN)
    return word


def uniform(*counters):
    """Uniform on [0, 1) with 24 random bits."""
    return (bits(*counters) >> 8).astype(jnp.float32) * np.float32(2.0**-24)


def normal(*counters):
    """Standard normal, by the inverse error function."""
    middle = 2 * uniform(*counters) + np.float32(2.0**-24 - 1)
    return np.float32(2**0.5) * jax.lax.erf_inv(middle)


def shuffled(place, count, key):
    """A permutation of range(count) by a hash of `key`, for each `place`: nothing is stored or sorted.

    A place is a pair (l, r) in Z_a x Z_b with a b = count, and each of six rounds adds a hash of one half to the
    other (a Feistel network).
    """
    a = next(n for n in range(int(count**0.5), 0, -1) if count % n == 0)
    b = count // a
    if a < 2 and count > 3:
        raise ValueError(f"count must be a product, got {count}")
    left, right = place // b, place % b
    for n in range(3):
        left = (left + (bits(key, 2 * n, right) % np.uint32(a)).astype(jnp.int32)) % a
        right = (right + (bits(key, 2 * n + 1, left) % np.uint32(b)).astype(jnp.int32)) % b
    return left * b + right


def cohorts(indices, rate, seed):
    """(sample indices, weights) of the participants of each step, [steps, most]: weight 0 fills up a cohort."""
    heard = np.random.default_rng(seed).random(indices.shape, dtype=np.float32) < rate
    most = max(1, int(heard.sum(axis=1).max()))
    first = np.argsort(~heard, axis=1, kind="stable")[:, :most]
    weights = np.take_along_axis(heard, first, axis=1).astype(np.float32)
    return np.take_along_axis(indices, first, axis=1), weights


def quantised(values, levels, blocks, uniforms):
    """The (s, b) stochastic quantiser of rows [clients, D], in blocks of ceil(D / b) numbers."""
    clients, size = values.shape
    width = -(-size // blocks)
    fill = ((0, 0), (0, blocks * width - size))
    value = jnp.pad(values, fill).reshape(clients, blocks, width)
    norm = jnp.sqrt(jnp.sum(value**2, axis=2, keepdims=True))
    level = value * jnp.where(norm > 0, levels / norm, 0) + uniforms.reshape(value.shape)
    found = jnp.clip(jnp.floor(level), -levels, levels) * (norm / levels)
    return found.reshape(clients, -1)[:, :size]
