"""Specs: values as TOML tables, as in experiment files, run folders and the run document."""

import dataclasses
import functools
import hashlib
import importlib
import json
import sys
import sysconfig
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.value import Value, fingerprint

LISTED = 4096  # an array with more numbers is written as its fingerprint
UNNAMED = "code without a name: "


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
    """A value as a TOML table: its name, then its arguments."""
    name, arguments = made.call()
    return {"name": name, **{k: plain(it) for k, it in arguments.items() if it is not None}}


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


# --- code -----------------------------------------------------------------------------------------


class _Opaque(Exception):
    """Code or data whose content cannot be read, so that it has no fingerprint."""


def code_name(code: Callable[..., Any]) -> str:
    """`module:name` for code that can be imported, with a fingerprint of its content unless it is a library's.

    >>> code_name(np.mean)
    'numpy:mean'
    """
    module, name = getattr(code, "__module__", None), getattr(code, "__qualname__", None)
    known = _known(code)
    if known and _of_library(str(module)):
        return known
    try:
        digest = hashlib.sha256(repr(_content(code, set())).encode()).hexdigest()[:16]
    except _Opaque:
        return known or f"{UNNAMED}{module}.{name or repr(code)}"
    return f"{known or f'code {name}'} sha256 {digest}"


def _known(code: Any) -> str | None:
    """`module:name`, if the code can be imported by it."""
    module, name = getattr(code, "__module__", None), getattr(code, "__qualname__", None)
    found = module not in (None, "__main__") and name and _imported(module, name) is code
    return f"{module}:{name}" if found else None


@functools.cache
def _of_library(module: str) -> bool:
    """Whether a module is of this package, of Python or installed: it does not change under its users' hands."""
    if module.partition(".")[0] == __name__.partition(".")[0]:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:  # compiled into Python
        return True
    homes = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    return any(Path(file).is_relative_to(home) for home in homes)


def _imported(module: str, name: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for each in name.split("."):
            found = getattr(found, each)
    except (ImportError, AttributeError):
        return None
    return found


def _content(given: Any, above: set[int]) -> Any:
    """The content of a piece of code as nested tuples; raises `_Opaque` if it cannot be read."""
    if isinstance(given, bool | int | float | complex | str | bytes | type(None) | type(...)):
        return given
    if id(given) in above:
        return "itself"
    above = above | {id(given)}
    if isinstance(given, tuple | list | set | frozenset | range):
        items = [_content(item, above) for item in given]
        return type(given).__name__, sorted(items, key=repr) if isinstance(
            given, set | frozenset
        ) else items
    if isinstance(given, dict):
        return [(str(key), _content(item, above)) for key, item in given.items()]
    if isinstance(given, np.ndarray | np.generic) or hasattr(given, "__array__"):
        return fingerprint(np.asarray(given))
    if isinstance(given, Value):
        return repr(given)
    if isinstance(given, type | types.ModuleType | types.BuiltinFunctionType):
        return f"{getattr(given, '__module__', '')}.{given.__name__}"
    if isinstance(given, functools.partial):
        return [_content(each, above) for each in (given.func, given.args, given.keywords)]
    if isinstance(given, types.MethodType):
        return [_content(each, above) for each in (given.__func__, given.__self__)]
    if isinstance(given, types.CodeType):
        return given.co_code, given.co_names, _content(given.co_consts, above)
    if isinstance(given, types.FunctionType):
        if _known(given) and _of_library(given.__module__):
            return _known(given)
        cells = [_cell(each) for each in given.__closure__ or ()]
        read = {n: given.__globals__[n] for n in _names(given.__code__) if n in given.__globals__}
        parts = given.__code__, given.__defaults__, given.__kwdefaults__, cells, read
        return [_content(each, above) for each in parts]
    if hasattr(given, "__wrapped__"):
        return _content(given.__wrapped__, above)
    if dataclasses.is_dataclass(given):
        named = [(f.name, getattr(given, f.name, None)) for f in dataclasses.fields(given)]
        return type(given).__qualname__, _content(dict(named), above)
    raise _Opaque


def _names(code: types.CodeType) -> list[str]:
    """The names that a function and the functions inside it may read from outside."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return sorted({*code.co_names, *(name for each in inner for name in _names(each))})


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
