"""Fields of a value: the kinds, each with its check."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from mainstem import check

Checked = Callable[[str, str, Any], Any]  # (owner, field, what was given) -> what is stored

_NEEDED: Any = dataclasses.MISSING


def _field(default: Any, checked: Checked | None, is_static: bool) -> Any:
    return dataclasses.field(default=default, metadata={"check": checked, "static": is_static})


def static(default: Any = _NEEDED, checked: Checked | None = None) -> Any:
    """A field that is part of the structure: hashable, and every value of it compiles another program."""
    return _field(default, checked, True)


def leaf(default: Any = _NEEDED, checked: Checked | None = None) -> Any:
    """A field of numbers or arrays."""
    return _field(default, checked, False)


def integer(default: Any = _NEEDED, *, least: int, most: int | None = None) -> Any:
    """A static integer."""
    return static(default, lambda owner, name, it: check.integer(owner, name, it, least, most))


def flag(default: Any = _NEEDED) -> Any:
    """A static bool."""
    return static(default, check.flag)


def one_of(*allowed: str, default: Any = _NEEDED) -> Any:
    """A static string, one of `allowed`."""
    return static(default, lambda owner, name, it: check.one_of(owner, name, it, allowed))


def number(default: Any = _NEEDED) -> Any:
    """A finite number."""
    return leaf(default, check.number)


def positive(default: Any = _NEEDED) -> Any:
    """A finite number above 0."""
    return leaf(default, check.positive)


def at_least(least: float, default: Any = _NEEDED) -> Any:
    """A finite number of at least `least`."""
    return leaf(default, lambda owner, name, it: check.at_least(owner, name, it, least))


def rates(default: Any = _NEEDED) -> Any:
    """A probability above 0, or one for each client."""
    return leaf(default, lambda owner, name, it: _scalar(check.rates(owner, name, it)))


def part(kind: type, example: str, default: Any = _NEEDED) -> Any:
    """A value of this `kind`."""
    return leaf(default, lambda owner, name, it: check.instance(owner, name, it, kind, example))


def _scalar(array: np.ndarray) -> Any:
    return float(array) if array.ndim == 0 else array
