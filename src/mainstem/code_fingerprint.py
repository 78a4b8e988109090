"""Code fingerprint: functions and classes are identified by what they do, so that changed code is other code."""

import contextlib
import dataclasses
import enum
import functools
import hashlib
import importlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem.value import Value, fingerprint

UNNAMED = "code without a name: "
INSTALLED = {"site-packages", "dist-packages"}  # folders of packages that pip or a system installs


class _Opaque(Exception):
    """Code or data whose content cannot be read, so that it has no fingerprint."""


def code_name(code: Callable[..., Any]) -> str:
    """`module:name` for code that can be imported, with a fingerprint of its content unless it is a library's.

    Of code that cannot be imported, everything that it reads must have a content.

    >>> code_name(np.mean)
    'numpy:mean'
    """
    module, name = getattr(code, "__module__", None), getattr(code, "__qualname__", None)
    known = _known(code)
    if known and of_library(str(module)):
        return known
    try:
        content = _Reader(lenient=known is not None).content(code)
    except _Opaque:
        return f"{UNNAMED}{module}.{name or repr(code)}"
    digest = hashlib.sha256(repr(content).encode()).hexdigest()[:16]
    return f"{known or f'code {name}'} sha256 {digest}"


def of_library(module: str) -> bool:
    """Whether a module is of this package, of Python or installed: it does not change under its users' hands."""
    first = module.partition(".")[0]
    if first == __name__.partition(".")[0] or first in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and not INSTALLED.isdisjoint(Path(file).parts)


def _known(code: Any) -> str | None:
    """`module:name`, if the code can be imported by it."""
    module, name = getattr(code, "__module__", None), getattr(code, "__qualname__", None)
    found = module not in (None, "__main__") and name and _imported(module, name) is code
    return f"{module}:{name}" if found else None


def _imported(module: str, name: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for each in name.split("."):
            found = getattr(found, each)
    except (ImportError, AttributeError):
        return None
    return found


class _Reader:
    """Reads the content of code as nested tuples and lists, the same ones in every process.

    What has no content, such as a lock, is written as its type if the reader is `lenient`, and else an error.
    """

    def __init__(self, lenient: bool):
        self._lenient = lenient
        self._places: dict[int, int] = {}  # of the functions and classes that were read
        self._read: list[Any] = []  # these, so that their ids stay theirs
        self._above: set[int] = set()  # the objects that contain the one that is read

    def content(self, given: Any) -> Any:
        """The content of a piece of code, or of data that it reads."""
        if isinstance(given, bool | int | float | complex | str | bytes | type(None) | type(...)):
            return given
        if id(given) in self._above:
            return "itself"
        if isinstance(given, type | types.FunctionType):
            if id(given) in self._places:
                return "number", self._places[id(given)]
            self._places[id(given)] = len(self._places)
            self._read.append(given)
        with self._inside(given):
            return self._data(given)

    @contextlib.contextmanager
    def _inside(self, given: Any) -> Iterator[None]:
        self._above.add(id(given))
        yield
        self._above.discard(id(given))

    def _all(self, each: Iterable[Any]) -> list[Any]:
        return [self.content(item) for item in each]

    def _data(self, given: Any) -> Any:
        if isinstance(given, tuple | list | range):
            return type(given).__name__, self._all(given)
        if isinstance(given, set | frozenset):
            return type(given).__name__, sorted(self._all(given), key=repr)
        if isinstance(given, dict | types.MappingProxyType):
            return [self._all(pair) for pair in given.items()]
        if isinstance(given, Value):
            return self._all([type(given), given.__getstate__()])
        if isinstance(given, enum.Enum):
            return type(given).__qualname__, given.name, self.content(given.value)
        if isinstance(given, type):
            return self._class(given)
        if hasattr(given, "__array__"):
            return self._array(given)
        return self._code(given)

    def _code(self, given: Any) -> Any:
        if isinstance(given, types.FunctionType):
            return self._function(given)
        if isinstance(given, types.CodeType):
            return self._instructions(given, given.co_consts)
        if isinstance(given, types.ModuleType | types.BuiltinFunctionType):
            return f"{getattr(given, '__module__', '')}.{given.__name__}"
        if isinstance(given, property):
            return self._all([given.fget, given.fset, given.fdel])
        if isinstance(given, functools.cached_property):
            return self.content(given.func)
        if isinstance(given, functools.partial):
            return self._all([given.func, given.args, given.keywords])
        if isinstance(given, types.MethodType):
            return self._all([given.__func__, given.__self__])
        if hasattr(given, "__wrapped__"):  # by jax.jit, or with derivatives by jax.custom_vjp
            rules = (getattr(given, name, None) for name in ("fwd", "bwd", "jvp"))
            return self._all([given.__wrapped__, *rules])
        if dataclasses.is_dataclass(given):
            named = [(f.name, getattr(given, f.name, None)) for f in dataclasses.fields(given)]
            return type(given).__qualname__, self.content(dict(named))
        if self._lenient:
            return f"a {type(given).__qualname__}"
        raise _Opaque

    def _array(self, given: Any) -> Any:
        if isinstance(given, jax.Array) and jax.numpy.issubdtype(given.dtype, jax.dtypes.prng_key):
            given = jax.random.key_data(given)
        try:
            array = np.asarray(given)
        except Exception:  # whatever it is, it is no array
            return self._code(given)
        return self.content(array.tolist()) if array.dtype == object else fingerprint(array)

    def _class(self, given: type) -> Any:
        if of_library(given.__module__):
            return f"{given.__module__}.{given.__qualname__}"
        return given.__qualname__, *self._all([given.__bases__, _members(given)])

    def _function(self, given: types.FunctionType) -> Any:
        if of_library(given.__module__ or "") and (known := _known(given)):
            return known
        code, names = given.__code__, _names(given.__code__)
        constants = code.co_consts
        if given.__doc__ is not None and constants[:1] == (given.__doc__,):
            constants = (None, *constants[1:])
        read = {name: given.__globals__[name] for name in names if name in given.__globals__}
        read = {name: _used(each, names) for name, each in read.items()}
        cells = [_cell(each) for each in given.__closure__ or ()]
        beside = given.__defaults__, given.__kwdefaults__, cells, read
        return [self._instructions(code, constants), *self._all(beside)]

    def _instructions(self, code: types.CodeType, constants: tuple[Any, ...]) -> Any:
        arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
        named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], code.co_freevars
        does = code.co_code, code.co_exceptiontable, code.co_flags, code.co_names
        return [*arguments, *named, *does, self.content(constants)]


def _used(given: Any, names: list[str]) -> Any:
    """Of a module of the user's own, what code that reads these names may use; anything else as it is."""
    if not isinstance(given, types.ModuleType) or of_library(given.__name__):
        return given
    return {name: vars(given)[name] for name in names if name in vars(given)}


_OF_NAMED_TUPLES = {*vars(NamedTuple("_", []))}
_OF_PYTHON = {"_abc_impl", "__final_value__"}  # that classes get beside what is written in them
_OF_DATACLASSES = {f"__{name}__" for name in ("init", "setattr", "delattr", "repr", "eq", "hash")}
_DESCRIPTORS = types.MemberDescriptorType | types.GetSetDescriptorType


def _members(given: type) -> dict[str, Any]:
    """What the author of a class has written in it, and the fields of a named tuple."""
    tuples = _OF_NAMED_TUPLES if "_fields" in vars(given) else set()
    return {
        name: each
        for name, each in vars(given).items()
        if name not in _OF_PYTHON
        and not (name in tuples and name not in ("_fields", "_field_defaults"))
        and not (name.startswith("__") and _generated(name, each))
        and not isinstance(each, _DESCRIPTORS)
        and type(each).__name__ != "_tuplegetter"
    }


def _generated(name: str, member: Any) -> bool:
    """Whether a member with underscores around its name is no code, or was written by `dataclass`."""
    code = getattr(getattr(member, "__wrapped__", member), "__code__", None)
    if code is None:
        return not isinstance(member, property | classmethod | staticmethod)
    return name in _OF_DATACLASSES and code.co_filename == "<string>"


def _names(code: types.CodeType) -> list[str]:
    """The names that a function and the functions inside it may read from outside."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return sorted({*code.co_names, *(name for each in inner for name in _names(each))})


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
