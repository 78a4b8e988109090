"""Code fingerprint: functions and classes are identified by what they do, so that changed code is other code."""

import dataclasses
import enum
import functools
import hashlib
import importlib
import sys
import sysconfig
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mainstem.value import Value, fingerprint

UNNAMED = "code without a name: "


class _Opaque(Exception):
    """Code or data whose content cannot be read, so that it has no fingerprint."""


def code_name(code: Callable[..., Any]) -> str:
    """`module:name` for code that can be imported, with a fingerprint of its content unless it is a library's.

    >>> code_name(np.mean)
    'numpy:mean'
    """
    module, name = getattr(code, "__module__", None), getattr(code, "__qualname__", None)
    known = _known(code)
    if known and of_library(str(module)):
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
def of_library(module: str) -> bool:
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
    if isinstance(given, Value):
        return [_content(each, above) for each in (type(given), given.__getstate__())]
    if isinstance(given, type) and not of_library(given.__module__):
        return given.__qualname__, [
            _content(each, above) for each in (given.__bases__, _members(given))
        ]
    if isinstance(given, type | types.ModuleType | types.BuiltinFunctionType):
        return f"{getattr(given, '__module__', '')}.{given.__name__}"
    if isinstance(given, np.ndarray | np.generic) or hasattr(given, "__array__"):
        return fingerprint(np.asarray(given))
    if isinstance(given, enum.Enum):
        return type(given).__qualname__, given.name, _content(given.value, above)
    if isinstance(given, property):
        return [_content(each, above) for each in (given.fget, given.fset, given.fdel)]
    if isinstance(given, functools.cached_property):
        return _content(given.func, above)
    if isinstance(given, functools.partial):
        return [_content(each, above) for each in (given.func, given.args, given.keywords)]
    if isinstance(given, types.MethodType):
        return [_content(each, above) for each in (given.__func__, given.__self__)]
    if isinstance(given, types.CodeType):
        return given.co_code, given.co_names, _content(given.co_consts, above)
    if isinstance(given, types.FunctionType):
        if _known(given) and of_library(given.__module__):
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


_GENERATED = {*vars(NamedTuple("_", [])), "__final_value__", "_abc_impl"}


def _members(given: type) -> dict[str, Any]:
    """What the author of a class has written in it, and the fields of a named tuple."""
    written = {
        name: each
        for name, each in vars(given).items()
        if name not in _GENERATED
        and not (name.startswith("__") and _generated(each))
        and not isinstance(each, types.MemberDescriptorType | types.GetSetDescriptorType)
        and type(each).__name__ != "_tuplegetter"
    }
    fields = {name: getattr(given, name, None) for name in ("_fields", "_field_defaults")}
    return written | {name: each for name, each in fields.items() if each}


def _generated(member: Any) -> bool:
    """Whether a member with underscores around its name is no function, or one that `dataclass` wrote."""
    code = getattr(member, "__code__", None)
    return code is None or code.co_filename == "<string>"


def _names(code: types.CodeType) -> list[str]:
    """The names that a function and the functions inside it may read from outside."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return sorted({*code.co_names, *(name for each in inner for name in _names(each))})


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
