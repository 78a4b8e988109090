"""Presets: functions that assemble a value, which is then printed and saved as a call of the function."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeVar, get_type_hints

from mainstem.errors import BadParameter
from mainstem.value.frozen import PRESETS, Value

P = ParamSpec("P")
V = TypeVar("V")


class Preset(NamedTuple):
    """A function that assembles a value, and the field in which the value stores each parameter."""

    make: Callable[..., Any]
    own: Mapping[str, str]  # parameter -> path of the field, such as participation.rate
    parts: Mapping[str, str]  # the same for the parts that it takes as `**parts`

    def arguments(self, made: Value) -> dict[str, Any] | None:
        """The fewest arguments with which it makes this value; None: it cannot make it."""
        paths = {**self.own, **self.parts}
        given = {name: it for name, path in paths.items() if (it := _at(made, path)) is not None}
        for name in 2 * list(reversed(given)):  # twice: some can be removed only after others
            rest = {key: it for key, it in given.items() if key != name}
            given = rest if self._makes(made, rest) else given
        return given if self._makes(made, given) else None

    def added(self, arguments: Mapping[str, Any]) -> int:
        """The number of arguments that are parts, not parameters of its own."""
        return sum(name in self.parts for name in arguments)

    def _makes(self, made: Value, given: Mapping[str, Any]) -> bool:
        try:
            return bool(self.make(**given) == made)
        except (TypeError, ValueError):
            return False


def _at(made: Any, path: str) -> Any:
    for name in path.split("."):
        made = getattr(made, name, None)
    return made


def preset(of: type, **paths: str) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Registers a function: values of this class that it makes are printed and saved as a call of it.

    A parameter is stored in the field of its name, unless `paths` gives another path. If a part rejects a
    parameter of the function, the error names the function.
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
        PRESETS.setdefault(of, []).append(Preset(make, own, parts))
        return make

    return register


def parameters(factory: Callable[..., Any], *, parts: bool = True) -> dict[str, bool]:
    """The parameters of a class or function, and whether each is required; `**parts` by the names in it."""
    found = {}
    for name, parameter in inspect.signature(factory).parameters.items():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            found[name] = parameter.default is inspect.Parameter.empty
        elif parts and not takes_anything(factory):
            found |= dict.fromkeys(get_type_hints(parameter.annotation.__args__[0]), False)
    return found


def takes_anything(factory: Callable[..., Any]) -> bool:
    """Whether a function accepts keywords of any name."""
    every = inspect.signature(factory).parameters.values()
    caught = [each for each in every if each.kind is inspect.Parameter.VAR_KEYWORD]
    return any(not hasattr(each.annotation, "__args__") for each in caught)
