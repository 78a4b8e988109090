"""What every value owes: it is data."""

import pickle
import tomllib
from typing import Any

import jax
import tomli_w

from mainstem import algorithms, experiment, problems, streams
from mainstem.base import Algorithm, Problem, Stream
from mainstem.spec import plain
from mainstem.value import Value


def check_value(made: Value, *, in_files: bool = True) -> None:
    """Equal to its twin, hashable, picklable, a tree, printed on one line, and (`in_files`) TOML and back.

    >>> from mainstem import parts
    >>> check_value(parts.box(-1, 1))
    """
    twin = pickle.loads(pickle.dumps(made))
    assert twin == made, f"{made} is not what it was after pickling"
    assert hash(twin) == hash(made), f"{made} and its twin have different hashes"
    leaves, tree = jax.tree.flatten(made)
    assert jax.tree.unflatten(tree, leaves) == made, f"{made} is not what its leaves make"
    assert "\n" not in repr(made), f"{made!r} does not fit on a line"
    if in_files:
        assert written_and_read(made) == made, f"{made} is not what its table makes"


def written_and_read(made: Value) -> Any:
    """The value again, from its table in a TOML file."""
    table = tomllib.loads(tomli_w.dumps({"it": plain(made)}))["it"]
    if not isinstance(table, dict):
        return made if table == made.short() else None
    home = next((home for kind, home in HOMES if isinstance(made, kind)), None)
    if home is None:
        return experiment.part("spec", table)
    return experiment.made("spec", home, table)


HOMES = ((Algorithm, algorithms), (Problem, problems), (Stream, streams))
