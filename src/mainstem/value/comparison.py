"""Comparison of fields: equality, hashes, and fingerprints of arrays."""

import hashlib
from typing import Any

import jax
import numpy as np


def same(one: Any, other: Any) -> bool:
    """Whether two fields are equal: numbers by value, arrays by content, functions by identity."""
    if one is other:
        return True
    if isinstance(one, np.ndarray | jax.Array) or isinstance(other, np.ndarray | jax.Array):
        if not is_array(one) or not is_array(other):
            return False
        a, b = np.asarray(one), np.asarray(other)
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(one, tuple | list) and type(one) is type(other):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def hashed(given: Any) -> Any:
    """A hashable key that is equal for fields that are the `same`."""
    if is_array(given):
        return fingerprint(np.asarray(given))
    if isinstance(given, tuple | list):
        return tuple(hashed(each) for each in given)
    if isinstance(given, dict):
        return tuple((key, hashed(given[key])) for key in sorted(given))
    return given


def is_array(given: Any) -> bool:
    """Whether it is an array of NumPy or JAX."""
    return isinstance(given, np.ndarray | jax.Array)


def fingerprint(array: np.ndarray) -> str:
    """The dtype, the shape and a hash of the content of an array."""
    words = array.dtype == object  # whose bytes are addresses
    data = repr(array.tolist()).encode() if words else np.ascontiguousarray(array).tobytes()
    digest = hashlib.sha256(data).hexdigest()[:16]
    return f"array {array.dtype} {array.shape} sha256 {digest}"
