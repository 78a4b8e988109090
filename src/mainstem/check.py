"""Argument checks: an error names the factory, the parameter, the allowed values and the given value."""

import difflib
import math
import numbers
from collections.abc import Collection
from typing import Any

import numpy as np

from mainstem.errors import BadParameter, MainstemError


def refuse(owner: str, name: str, wanted: str, got: Any) -> BadParameter:
    """Returns the error for the parameter `name` of the factory `owner`; the caller raises it."""
    shown = " ".join(repr(got).split())
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return BadParameter(f"{owner}: {name} must {wanted}, got {shown}", name)


def integer(owner: str, name: str, value: Any, least: int, most: int | None = None) -> int:
    """`value` as an int of at least `least` (and at most `most`).

    >>> integer("every", "period", 5, least=1)
    5
    """
    allowed = f"be an integer of at least {least}" + (
        "" if most is None else f" and at most {most}"
    )
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise refuse(owner, name, allowed, value)
    whole = int(value)
    if whole < least or (most is not None and whole > most):
        raise refuse(owner, name, allowed, whole)
    return whole


def flag(owner: str, name: str, value: Any) -> bool:
    """`value`, which must be a bool.

    >>> flag("linear", "intercept", True)
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise refuse(owner, name, "be true or false", value)
    return bool(value)


def number(owner: str, name: str, value: Any) -> float:
    """`value`, a number or an array of no dimensions, as a finite float."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise refuse(owner, name, "be a finite number", value)
    return float(value)


def positive(owner: str, name: str, value: Any) -> float:
    """`value` as a finite float above zero."""
    if number(owner, name, value) <= 0:
        raise refuse(owner, name, "be above 0", value)
    return float(value)


def at_least(owner: str, name: str, value: Any, least: float) -> float:
    """`value` as a finite float of at least `least`."""
    if number(owner, name, value) < least:
        raise refuse(owner, name, f"be at least {least}", value)
    return float(value)


def rates(owner: str, name: str, value: Any) -> np.ndarray:
    """`value` as one probability in (0, 1], or one for each client."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise refuse(owner, name, "lie in (0, 1]", value) from None
    if array.ndim > 1 or array.size == 0 or not np.all((array > 0) & (array <= 1)):
        raise refuse(owner, name, "lie in (0, 1]", value)
    return array


def counts(owner: str, name: str, value: Any) -> np.ndarray:
    """`value` as one integer of at least 1, or one for each client."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise refuse(owner, name, "be whole numbers of at least 1", value) from None
    fine = np.issubdtype(array.dtype, np.integer) and array.ndim < 2 and array.size
    if not fine or (array < 1).any():
        raise refuse(owner, name, "be whole numbers of at least 1", value)
    return array


def one_of(owner: str, name: str, value: Any, allowed: Collection[str]) -> str:
    """`value` as one of the `allowed` words."""
    if value not in allowed:
        raise refuse(owner, name, "be one of " + listed(value, sorted(allowed)), value)
    return str(value)


def listed(value: Any, allowed: Collection[str]) -> str:
    """The allowed words in a message, with the one that may have been meant.

    >>> listed("score", ["loss", "scores"])
    'loss, scores (did you mean scores?)'
    """
    near = difflib.get_close_matches(str(value), allowed, n=1, cutoff=0.8)
    return ", ".join(allowed) + (f" (did you mean {near[0]}?)" if near else "")


def instance(owner: str, name: str, value: Any, kind: type, example: str) -> Any:
    """`value`, if it is a `kind`."""
    if not isinstance(value, kind):
        noun = kind.__name__.lower()
        article = "an" if noun[0] in "aeiou" else "a"
        raise refuse(owner, name, f"be {article} {noun} such as {example}", value)
    return value


def amounts(
    owner: str, name: str, value: Any, *, least: float = 0.0, above: float | None = None
) -> Any:
    """`value` as a finite float, or as an array of them, of at least `least` (or `above` a number)."""
    allowed = f"be at least {least:g}" if above is None else f"be above {above:g}"
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise refuse(owner, name, allowed, value) from None
    low = array < least if above is None else array <= above
    if array.size == 0 or not np.isfinite(array).all() or np.any(low):
        raise refuse(owner, name, allowed, value)
    return float(array) if array.ndim == 0 else array


def step_counts(owner: str, name: str, value: Any) -> Any:
    """`value` as a number of steps, or as an array of several."""
    if np.ndim(value) == 0:
        return integer(owner, name, value, least=1)
    return counts(owner, name, value).astype(np.int64)


def host_and_port(option: str, given: str) -> tuple[str, int]:
    """The parts of HOST:PORT; `option` is the name of the option that got it.

    >>> host_and_port("--listen", "[::1]:8080")
    ('::1', 8080)
    """
    host, _, port = given.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise MainstemError(f"{option} must be HOST:PORT, such as 127.0.0.1:8080, got {given}")
    return host.strip("[]"), int(port)
