"""Printing: a field of a value in one line, as in the call that makes the value."""

from typing import Any

import jax
import numpy as np

from mainstem.value.comparison import fingerprint, is_array

SHOWN = 12  # an array with more numbers is printed as its fingerprint


def shown(given: Any) -> str:
    """A field in one line."""
    if hasattr(given, "short"):  # a value
        brief = given.short()
        return repr(brief) if hasattr(brief, "short") else shown(brief)
    if isinstance(given, jax.core.Tracer):
        return str(given.aval)
    if is_array(given):
        array = np.asarray(given)
        return repr(array.tolist()) if array.size <= SHOWN else f"<{fingerprint(array)}>"
    if isinstance(given, dict):
        return "{" + ", ".join(f"{key!r}: {shown(each)}" for key, each in given.items()) + "}"
    if isinstance(given, tuple | list):
        return repr([Shown(each) for each in given])
    if callable(given) and hasattr(given, "__qualname__"):
        return f"{given.__module__}.{given.__qualname__}"
    return " ".join(repr(given).split())


class Shown:
    """An entry of a list whose `repr` is given by `shown`."""

    def __init__(self, given: Any):
        self.given = given

    def __repr__(self) -> str:
        return shown(self.given)
