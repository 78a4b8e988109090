"""Values: final, frozen dataclasses that are JAX pytrees. Fields say what a value is, methods are its equations.

Numbers and other values are leaves and branches of the tree (traced, stacked, placed on devices); fields
made with `static`, `integer`, `flag` or `one_of` are part of its structure. Everything else follows from the
fields: equality, hash, pickle, `print` and the table of an experiment file.
"""

import abc
import dataclasses
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar, dataclass_transform, get_type_hints

import jax
import numpy as np

from mainstem import check
from mainstem.errors import BadParameter

P = ParamSpec("P")
V = TypeVar("V")
Checked = Callable[[str, str, Any], Any]  # (owner, field, what was given) -> what is kept

_NEEDED: Any = dataclasses.MISSING
SHOWN = 12  # numbers of an array that are printed; of larger ones the fingerprint


class Value(abc.ABC):
    """What all values share. A class is abstract, or final and made with `value`."""

    def __init_subclass__(cls) -> None:
        for base in cls.__mro__[1:]:
            if "__final_value__" in vars(base):
                raise TypeError(f"{base.__name__} is final: build on {base.__mro__[1].__name__}")

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for field in fields(self):
            accepts: Checked | None = field.metadata.get("check")
            given = getattr(self, field.name)
            left_out = given is None and field.default is None
            if accepts is None or left_out or isinstance(given, jax.core.Tracer):
                continue  # a traced number was checked where it came from
            if isinstance(given, jax.Array) and given.ndim == 0:
                given = given.item()
            keep(self, field.name, accepts(owner, field.name, given))
        self.admit()

    def admit(self) -> None:
        """Refuses fields that do not fit together."""

    def replace(self, **changes: Any) -> Self:
        """The value with other fields, checked like a new one."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def call(self) -> tuple[str, dict[str, Any]]:
        """The name and the arguments of a call that makes this value; what has its default is left out.

        A preset's, where one makes it: what a paper has a name for is called by it.
        """
        return self._call

    @functools.cached_property
    def _call(self) -> tuple[str, dict[str, Any]]:
        for parts in (False, True):
            for tried in _PRESETS.get(type(self), ()):
                arguments = tried.arguments(self, parts)
                if arguments is not None:
                    return tried.make.__name__, arguments
        return type(self).__name__, stated(self)

    def short(self) -> Any:
        """What may stand for this value inside a call: `step=0.1` for ``step=constant(rate=0.1)``."""
        return self

    def __repr__(self) -> str:
        name, arguments = self.call()
        return f"{name}({', '.join(f'{key}={shown(given)}' for key, given in arguments.items())})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [field.name for field in fields(self)]
        return all(same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((type(self), *(hashed(getattr(self, f.name)) for f in fields(self))))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def fields(made: Value) -> tuple[dataclasses.Field[Any], ...]:
    """The fields of a value."""
    return dataclasses.fields(made)  # type: ignore[arg-type]


def stated(made: Value) -> dict[str, Any]:
    """The fields of a value that differ from their defaults."""
    return {
        field.name: getattr(made, field.name)
        for field in fields(made)
        if not same(getattr(made, field.name), field.default)
    }


def parts_of(made: Value) -> Iterator[tuple[str, Value]]:
    """The fields of a value that are values."""
    for field in fields(made):
        inner = getattr(made, field.name)
        if isinstance(inner, Value):
            yield field.name, inner


def keep(made: Value, name: str, given: Any) -> None:
    """Settles a field while the value is being made: for `admit` alone."""
    object.__setattr__(made, name, given)


# --- fields ---------------------------------------------------------------------------------------


def _field(default: Any, checked: Checked | None, is_static: bool) -> Any:
    return dataclasses.field(default=default, metadata={"check": checked, "static": is_static})


def static(default: Any = _NEEDED, checked: Checked | None = None) -> Any:
    """A field that is part of the structure: hashable, and another program for every other value."""
    return _field(default, checked, True)


def leaf(default: Any = _NEEDED, checked: Checked | None = None) -> Any:
    """A field of numbers or arrays."""
    return _field(default, checked, False)


def integer(default: Any = _NEEDED, *, least: int, most: int | None = None) -> Any:
    """A static whole number."""
    return static(default, lambda owner, name, it: check.integer(owner, name, it, least, most))


def flag(default: Any = _NEEDED) -> Any:
    """A static yes or no."""
    return static(default, lambda owner, name, it: bool(it))


def one_of(*allowed: str, default: Any = _NEEDED) -> Any:
    """A static word."""
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


@dataclass_transform(
    frozen_default=True,
    field_specifiers=(static, leaf, integer, flag, one_of, number, positive, at_least, rates, part),
)
def value(cls: type[V]) -> type[V]:
    """Makes a class final, frozen, a dataclass and a pytree.

    >>> @value
    ... class Line(Value):
    ...     slope: float = number()
    ...     points: int = integer(default=2, least=2)
    >>> line = Line(0.5, points=3)
    >>> line, line == Line(slope=0.5, points=3), jax.tree.leaves(line)
    (Line(slope=0.5, points=3), True, [0.5])
    >>> Line(0.5, points=1)
    Traceback (most recent call last):
    mainstem.errors.BadParameter: Line: points must be an integer of at least 2, got 1
    """
    made: Any = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    made.__final_value__ = True
    named = dataclasses.fields(made)
    for field in named:  # a fact that an abstract class derives can be a field here
        if isinstance(getattr(made, field.name, None), property):
            setattr(made, field.name, None)
    abc.update_abstractmethods(made)
    data = tuple(f.name for f in named if not f.metadata.get("static"))
    fixed = tuple(f.name for f in named if f.metadata.get("static"))
    keys = tuple(jax.tree_util.GetAttrKey(name) for name in data)

    def flatten(of: Any) -> tuple[Any, Any]:
        return tuple(getattr(of, name) for name in data), tuple(getattr(of, n) for n in fixed)

    def with_keys(of: Any) -> tuple[Any, Any]:
        children, structure = flatten(of)
        return tuple(zip(keys, children, strict=True)), structure

    def unflatten(structure: Any, children: Any) -> Any:
        """Goes round `__init__`: leaves may be traced, stacked or anything else by now."""
        of = object.__new__(made)
        for name, inner in zip(data, children, strict=True):
            object.__setattr__(of, name, inner)
        for name, inner in zip(fixed, structure, strict=True):
            object.__setattr__(of, name, inner)
        return of

    jax.tree_util.register_pytree_with_keys(made, with_keys, unflatten, flatten)
    return made


# --- presets --------------------------------------------------------------------------------------


class Preset(NamedTuple):
    """A function that assembles a value, and where the value keeps each of its parameters."""

    make: Callable[..., Any]
    own: Mapping[str, str]  # parameter -> field of fields, such as participation.rate
    parts: Mapping[str, str]  # the same for what it takes beside these

    def arguments(self, made: Value, parts: bool) -> dict[str, Any] | None:
        """The fewest arguments with which it makes this value, if it does; with its `parts`, or without."""
        paths = {**self.own, **(self.parts if parts else {})}
        given = {name: it for name, path in paths.items() if (it := _at(made, path)) is not None}
        for name in 2 * list(reversed(given)):  # twice: some can go only after others have gone
            rest = {key: it for key, it in given.items() if key != name}
            given = rest if self._makes(made, rest) else given
        return given if self._makes(made, given) else None

    def _makes(self, made: Value, given: Mapping[str, Any]) -> bool:
        try:
            return bool(self.make(**given) == made)
        except (TypeError, ValueError):
            return False


def _at(made: Any, path: str) -> Any:
    for name in path.split("."):
        made = getattr(made, name, None)
    return made


_PRESETS: dict[type, list[Preset]] = {}


def preset(of: type, **paths: str) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Lets values of this class print and be written as a call of the function, where it makes them.

    A parameter is kept in the field of its name unless `paths` say where. What a part refuses is refused in
    the name of the function that was called, if the parameter is its own.
    """

    def register(function: Callable[P, V]) -> Callable[P, V]:
        own = {name: paths.get(name, name) for name in parameters(function, parts=False)}
        every, anything = parameters(function), takes_anything(function)

        @functools.wraps(function)
        def make(*args: P.args, **kwargs: P.kwargs) -> V:
            for name in kwargs:
                if name not in every and not anything:
                    raise TypeError(
                        f"{function.__name__}() got an unexpected keyword argument {name!r}"
                    )
            try:
                return function(*args, **kwargs)
            except BadParameter as error:
                if error.parameter not in every:
                    raise
                _, _, text = str(error).partition(": ")
                renamed = BadParameter(f"{function.__name__}: {text}", error.parameter)
            raise renamed

        parts = {name: name for name in every if name not in own}
        _PRESETS.setdefault(of, []).append(Preset(make, own, parts))
        return make

    return register


def parameters(factory: Callable[..., Any], *, parts: bool = True) -> dict[str, bool]:
    """The parameters of a class or function, and whether each is needed; `**parts` by its own names."""
    found = {}
    for name, parameter in inspect.signature(factory).parameters.items():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            found[name] = parameter.default is inspect.Parameter.empty
        elif parts and not takes_anything(factory):
            found |= dict.fromkeys(get_type_hints(parameter.annotation.__args__[0]), False)
    return found


def takes_anything(factory: Callable[..., Any]) -> bool:
    """Whether a function takes keywords of any name."""
    every = inspect.signature(factory).parameters.values()
    caught = [each for each in every if each.kind is inspect.Parameter.VAR_KEYWORD]
    return any(not hasattr(each.annotation, "__args__") for each in caught)


# --- comparing, printing, writing down ------------------------------------------------------------


def same(one: Any, other: Any) -> bool:
    """Whether two fields hold the same: numbers by value, arrays by content, functions by identity."""
    if one is other:
        return True
    if isinstance(one, np.ndarray | jax.Array) or isinstance(other, np.ndarray | jax.Array):
        if not _is_array(one) or not _is_array(other):
            return False
        a, b = np.asarray(one), np.asarray(other)
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(one, tuple | list) and type(one) is type(other):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def hashed(given: Any) -> Any:
    """Something hashable that is equal for fields that are the `same`."""
    if _is_array(given):
        return fingerprint(np.asarray(given))
    if isinstance(given, tuple | list):
        return tuple(hashed(each) for each in given)
    if isinstance(given, dict):
        return tuple((key, hashed(given[key])) for key in sorted(given))
    return given


def _is_array(given: Any) -> bool:
    return isinstance(given, np.ndarray | jax.Array)


def fingerprint(array: np.ndarray) -> str:
    """What tells an array from another one."""
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    return f"array {array.dtype} {array.shape} sha256 {digest}"


def shown(given: Any) -> str:
    """A field in one line."""
    if isinstance(given, Value):
        brief = given.short()
        return repr(brief) if isinstance(brief, Value) else shown(brief)
    if isinstance(given, jax.core.Tracer):
        return str(given.aval)
    if _is_array(given):
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
    """An entry of a list whose `repr` is what `shown` makes of it."""

    def __init__(self, given: Any):
        self.given = given

    def __repr__(self) -> str:
        return shown(self.given)
