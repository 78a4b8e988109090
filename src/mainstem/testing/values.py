"""Contract of values: equality, hash, pickle, pytree, `repr` and TOML."""

import pickle
import tomllib
from typing import Any

import jax
import tomli_w

from mainstem import algorithms, experiment, parts, problems, streams, theory
from mainstem.base import Algorithm, Problem, Stream
from mainstem.plugins import factories
from mainstem.spec import plain
from mainstem.value import Value


def check_value(made: Value) -> None:
    """Checks that a value equals its copy from pickle, from its leaves and from TOML, and prints on one line.

    A value with code that cannot be imported cannot be pickled or written, and a value of a class that no
    installed package declares cannot be read from a file: then these checks are left out.

    >>> from mainstem import parts
    >>> check_value(parts.box(-1, 1))
    """
    table = plain(made)
    if not _holds_code(table):
        twin = pickle.loads(pickle.dumps(made))
        assert twin == made, f"{made} is not what it was after pickling"
        assert hash(twin) == hash(made), f"{made} and its twin have different hashes"
    leaves, tree = jax.tree.flatten(made)
    assert jax.tree.unflatten(tree, leaves) == made, f"{made} is not what its leaves make"
    assert "\n" not in repr(made), f"{made!r} does not fit on a line"
    if _can_be_read(made, table):
        assert written_and_read(made) == made, f"{made} is not what its table makes"


def _holds_code(table: Any) -> bool:
    """Whether something in a table is code that cannot be imported."""
    if isinstance(table, dict | list):
        return any(map(_holds_code, table.values() if isinstance(table, dict) else table))
    return isinstance(table, str) and table.startswith("code ")


def _can_be_read(made: Value, table: Any) -> bool:
    """Whether it can be read from a file: no code, no large array, and a known class."""
    if isinstance(table, list):
        return all(_can_be_read(made, each) for each in table)
    if not isinstance(table, dict):
        return not isinstance(table, str) or (
            not table.startswith(("array ", "code ")) and ":" not in table
        )
    known = {name for home in (algorithms, parts, problems, streams) for name in factories(home)}
    known |= set(experiment.DEALS) | set(theory.STEPS)
    inside = [each for key, each in table.items() if key != "name"]
    return table.get("name", "network") in known and all(_can_be_read(made, e) for e in inside)


def written_and_read(made: Value) -> Any:
    """The value after a round trip through its TOML table."""
    table = tomllib.loads(tomli_w.dumps({"it": plain(made)}))["it"]
    if not isinstance(table, dict):
        return made if table == made.short() else None
    home = next((home for kind, home in HOMES if isinstance(made, kind)), None)
    if home is None:
        return experiment.part("spec", table)
    return experiment.made("spec", home, table)


HOMES = ((Algorithm, algorithms), (Problem, problems), (Stream, streams))
