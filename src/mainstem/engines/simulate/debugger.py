"""Debug mode: the reference path, uncompiled; names the step and the client of a value that is not finite."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.engines.simulate import reference
from mainstem.engines.simulate.stage import Row, Stage
from mainstem.errors import MainstemError


class NotFinite(MainstemError, FloatingPointError):
    """A loss or a state that is NaN or infinite."""


def walk(
    stage: Stage, state: Any, pieces: Callable[[int], Any], flags: np.ndarray
) -> tuple[Any, Row]:
    """Runs the steps of `flags` one by one; `pieces(t)` are the stream's data for step t."""
    rows: list[Row] = []
    with jax.disable_jit():
        for t, sync in enumerate(flags, start=1):
            state, row, detail = reference.step(stage, state, pieces(t), jnp.int32(t), bool(sync))
            _finite(f"step {t}", "loss", detail.losses)
            for leaf in jax.tree.leaves(detail.clients):
                _finite(f"step {t}", "state", leaf)
            rows.append(row)
    return state, jax.tree.map(lambda *each: np.stack(each), *rows)


def _finite(when: str, what: str, values: Any) -> None:
    values = np.asarray(values)
    fine = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if not fine.all():
        client = int(np.flatnonzero(~fine)[0])
        worst = values.reshape(len(values), -1)[client]
        bad = worst[~np.isfinite(worst)][0]
        raise NotFinite(f"{when}, client {client}: its {what} is {bad}; a smaller step may help")
