"""Specs: values as TOML tables, as in experiment files, run folders and the run document."""

import hashlib
import json
from typing import Any

import numpy as np

from mainstem.code_fingerprint import UNNAMED, code_name, of_library
from mainstem.value import Value, fingerprint

LISTED = 4096  # an array with more numbers is written as its fingerprint
CODE = "code"  # the entry with the fingerprint of a value's class, where that is the user's own


def plain(given: Any) -> Any:
    """`given` in TOML types: a value becomes a table, a large array its fingerprint, code its name.

    >>> plain((1, 2.5, None))
    [1, 2.5, 'none']
    """
    if isinstance(given, Value):
        brief = given.short()
        return table(given) if isinstance(brief, Value) else plain(brief)
    if given is None:
        return "none"
    if isinstance(given, bool | int | float | str):
        return given
    if isinstance(given, np.generic):
        return given.item()
    if isinstance(given, list | tuple | set | frozenset | range):
        return [plain(item) for item in given]
    if isinstance(given, dict):
        return {str(key): plain(item) for key, item in given.items()}
    if callable(given):
        return code_name(given)
    if hasattr(given, "__array__"):
        array = np.asarray(given)
        small = array.size <= LISTED and array.dtype != object
        return array.tolist() if small else fingerprint(array)
    return str(given)


def table(made: Value) -> dict[str, Any]:
    """A value as a TOML table: its name, the fingerprint of a class of the user's own, then its arguments."""
    name, arguments = made.call()
    own = {} if of_library(type(made).__module__) else {CODE: code_name(type(made))}
    return {"name": name, **own, **{k: plain(it) for k, it in arguments.items() if it is not None}}


def name_of(made: Value) -> str:
    """The name of a value, for titles and legends."""
    return made.call()[0]


def same(found: Any, wanted: Any) -> bool:
    """Whether two specs have the same entries, in any order; NaN is equal to NaN.

    >>> same({"a": float("nan"), "b": [1]}, {"b": [1], "a": float("nan")})
    True
    """
    one, other = (json.dumps(each, sort_keys=True, default=str) for each in (found, wanted))
    return one == other


def digest(content: Any) -> str:
    """A hash of a spec, or of lists of specs and settings, in whatever order their entries are.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def difference(found: Any, wanted: Any, place: str = "") -> str:
    """The first place at which two specs differ, and what they have there.

    >>> difference({"name": "linear", "ridge": 0.1}, {"name": "linear", "ridge": 0.2})
    'ridge is 0.1 here, 0.2 there'
    """
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in [*found, *(key for key in wanted if key not in found)]:
            one, other = found.get(key, "none"), wanted.get(key, "none")
            if not same(one, other):
                return difference(one, other, f"{place}.{key}" if place else key)
    return f"{place or 'it'} is {found!r:.60} here, {wanted!r:.60} there"


def unnamed(spec: Any) -> str | None:
    """The first piece of code in a spec that has neither a name nor a fingerprint, if there is one."""
    if isinstance(spec, str):
        return spec.removeprefix(UNNAMED) if spec.startswith(UNNAMED) else None
    inside = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ()
    return next((found for each in inside if (found := unnamed(each))), None)


def codes(spec: Any) -> list[str]:
    """The fingerprints of the user's own classes in a spec."""
    if isinstance(spec, dict):
        own = [spec[CODE]] if CODE in spec else []
        return own + [found for each in spec.values() for found in codes(each)]
    return [found for each in spec for found in codes(each)] if isinstance(spec, list) else []
