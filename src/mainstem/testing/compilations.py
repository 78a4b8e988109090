"""Compilations: counts the programs that XLA compiles, with the monitoring of JAX."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax.monitoring

EVENT = "/jax/core/compile/backend_compile_duration"


class Count:
    """The number of programs that were compiled."""

    def __init__(self) -> None:
        self.compiled = 0


_counting: list[Count] = []


def _listen(event: str, duration_secs: float, **_: Any) -> None:
    if event == EVENT:
        for count in _counting:
            count.compiled += 1


jax.monitoring.register_event_duration_secs_listener(_listen)


@contextlib.contextmanager
def counted() -> Iterator[Count]:
    """Counts the programs that are compiled inside the block.

    >>> import jax.numpy as jnp
    >>> with counted() as first:
    ...     _ = jax.jit(lambda x: x + 12345)(jnp.ones(7))
    >>> first.compiled > 0
    True
    """
    count = Count()
    _counting.append(count)
    try:
        yield count
    finally:
        _counting.remove(count)
