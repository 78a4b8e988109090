"""Specs: values as TOML tables, as in experiment files, run folders and the run document."""

import dataclasses
import functools
import hashlib
import importlib
import types
from collections.abc import Callable
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
    """`module:name` for code that can be imported, else a fingerprint of its content.

    >>> code_name(np.mean)
    'numpy:mean'
    """
    module, name = getattr(code, "__module__", None), getattr(code, "__qualname__", None)
    if module not in (None, "__main__") and name and _imported(module, name) is code:
        return f"{module}:{name}"
    try:
        digest = hashlib.sha256(repr(_content(code, set())).encode()).hexdigest()[:16]
    except _Opaque:
        return f"{UNNAMED}{module}.{name or repr(code)}"
    return f"code {name} sha256 {digest}"


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
        if (
            given.__module__ != "__main__"
            and _imported(given.__module__, given.__qualname__) is given
        ):
            return f"{given.__module__}:{given.__qualname__}"
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
