"""Plugins: factories of installed packages, from the entry points of mainstem.algorithms, .problems, ....

A package that declares, in its pyproject.toml,

    [project.entry-points."mainstem.algorithms"]
    my_algorithm = "my_package:my_algorithm"

can use ``name = "my_algorithm"`` in experiment files, and in the run document of a federation, wherever the
package is installed. Nothing else that a run document names is ever imported; an experiment file, which the
user runs, may also name a `factory`.
"""

import functools
import importlib
from collections.abc import Callable
from importlib import metadata
from types import ModuleType
from typing import Any

from mainstem.errors import BadSpec, first_line

Factory = Callable[..., Any]
DEALS = ("by_key", "by_label", "evenly", "in_time")


def factories(module: ModuleType) -> dict[str, Factory]:
    """The factories, by name, that a file may use where it needs one of this module's values."""
    built_in = {name: getattr(module, name) for name in module.__all__ if name not in DEALS}
    return {**{name: _Late(name, entry) for name, entry in _entries(module).items()}, **built_in}


def _entries(module: ModuleType) -> dict[str, metadata.EntryPoint]:
    found = metadata.entry_points(group=module.__name__)
    return {entry.name: entry for entry in found}


class _Late:
    """A plugin's factory, imported when it is first called or inspected."""

    def __init__(self, name: str, entry: metadata.EntryPoint):
        self.__name__ = name
        self._entry = entry

    @functools.cached_property
    def __wrapped__(self) -> Factory:
        try:
            found: Factory = self._entry.load()
        except Exception as error:
            plugin, reason = self._entry.value, first_line(error)
            raise BadSpec(
                f"{self.__name__}: the plugin {plugin} cannot be loaded: {reason}"
            ) from None
        return found

    def __call__(self, **arguments: Any) -> Any:
        return self.__wrapped__(**arguments)


def packages(content: Any) -> dict[str, str]:
    """The packages that names in the content of a file come from, with their versions; those of mainstem apart."""
    names, tables = set(), [content]
    while tables:
        inside = tables.pop()
        each = list(inside.values()) if isinstance(inside, dict) else list(inside)
        tables += [value for value in each if isinstance(value, dict | list | tuple)]
        if isinstance(inside, dict) and isinstance(inside.get("name"), str):
            names.add(inside["name"])
    groups = (f"mainstem.{kind}" for kind in ("algorithms", "parts", "problems"))
    entries = [entry for group in groups for entry in metadata.entry_points(group=group)]
    found = [entry.dist for entry in entries if entry.name in names and entry.dist is not None]
    return {each.name: each.version for each in found}


def imported(path: str) -> Any:
    """The object at `module:name`; an ImportError if it cannot be found."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (AttributeError, ValueError) as error:
        raise ImportError(str(error)) from None
