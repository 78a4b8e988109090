"""Values: the base class, and the decorator that makes a class final, frozen, a dataclass and a pytree."""

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar, dataclass_transform

import jax

from mainstem.value import fields as kinds
from mainstem.value.comparison import hashed, same
from mainstem.value.documented import equations, markdown
from mainstem.value.printing import shown

V = TypeVar("V")

PRESETS: dict[type, list[Any]] = {}  # by the class of the assembled value; filled by `preset`


class Value(abc.ABC):
    """Base class of all values. A subclass is abstract, or final and decorated with `value`."""

    def __init_subclass__(cls) -> None:
        for base in cls.__mro__[1:]:
            if "__final_value__" in vars(base):
                raise TypeError(f"{base.__name__} is final: build on {base.__mro__[1].__name__}")

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for field in fields(self):
            accepts: kinds.Checked | None = field.metadata.get("check")
            given = getattr(self, field.name)
            left_out = given is None and field.default is None
            if accepts is None or left_out or isinstance(given, jax.core.Tracer):
                continue  # a traced number was checked before it was traced
            if isinstance(given, jax.Array) and given.ndim == 0:
                given = given.item()
            set_field(self, field.name, accepts(owner, field.name, given))
        self.admit()

    def admit(self) -> None:
        """Raises an error if the fields do not fit together."""

    def replace(self, **changes: Any) -> Self:
        """The value with other fields, checked like a new one."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def call(self) -> tuple[str, dict[str, Any]]:
        """The name and the arguments of a call that makes this value; defaults are left out.

        A call of a preset, if one makes it, so that an algorithm of a paper has its name there. Of several
        presets, the one with the fewest added parts.
        """
        make, arguments, _ = self._maker
        return make.__name__, arguments

    @property
    def documented(self) -> object:
        """The docstring's owner, for what it computes: the preset, if that has the equations, else the class."""
        make, _, added = self._maker
        return make if equations(make) and not added else type(self)

    @functools.cached_property
    def _maker(self) -> tuple[Callable[..., Any], dict[str, Any], int]:
        """The preset or the class that makes this value, its arguments, and how many of these are added parts."""
        tried = ((each, each.arguments(self)) for each in PRESETS.get(type(self), ()))
        made = [(each, given) for each, given in tried if given is not None]
        if not made:
            return type(self), stated(self), 0
        chosen, arguments = min(made, key=lambda found: found[0].added(found[1]))
        return chosen.make, arguments, chosen.added(arguments)

    def short(self) -> Any:
        """A shorter form of this value inside a call: ``step=0.1`` for ``step=constant(size=0.1)``."""
        return self

    def __repr__(self) -> str:
        name, arguments = self.call()
        return f"{name}({', '.join(f'{key}={shown(given)}' for key, given in arguments.items())})"

    def _repr_markdown_(self) -> str:
        """The value in a notebook."""
        return markdown(repr(self), self.documented)

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


def once(made: Value, name: str, compute: Callable[[], Any]) -> Any:
    """What `compute` returned when it was first asked for this value under this name; it is kept as long as the
    value, which cannot change, and is no part of it."""
    kept = vars(made)
    if f"_once {name}" not in kept:
        kept[f"_once {name}"] = compute()
    return kept[f"_once {name}"]


def set_field(made: Value, name: str, given: Any) -> None:
    """Sets a field while the value is being made; only for `admit`."""
    object.__setattr__(made, name, given)


@dataclass_transform(
    frozen_default=True,
    field_specifiers=(
        kinds.static,
        kinds.leaf,
        kinds.integer,
        kinds.flag,
        kinds.one_of,
        kinds.number,
        kinds.positive,
        kinds.at_least,
        kinds.rates,
        kinds.part,
    ),
)
def value(cls: type[V]) -> type[V]:
    """Makes a class final, frozen, a dataclass and a pytree.

    >>> from mainstem.value import Value, integer, number, value
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
    if taken := {field.name for field in named} & {"name", "code"}:
        word = f"a field cannot be called {min(taken)!r}, which is an entry of its own in a file"
        raise TypeError(f"{cls.__name__}: {word}")
    for field in named:  # a property of an abstract class can be a field here
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
        """Bypasses `__init__`: leaves may be traced, stacked or anything else."""
        of = object.__new__(made)
        for name, inner in zip(data, children, strict=True):
            object.__setattr__(of, name, inner)
        for name, inner in zip(fixed, structure, strict=True):
            object.__setattr__(of, name, inner)
        return of

    jax.tree_util.register_pytree_with_keys(made, with_keys, unflatten, flatten)
    return made
