"""Hosts: processes, on one machine or several, that compute one simulation together with `jax.distributed`.

All hosts make the same calls with the same arguments, and each computes its share of the clients or of the seeds.
What depends on a clock or on files is decided by the first host; the others learn it with `agreed`. They need to
see the same folder: the first host writes the trace, and each host writes its share of a checkpoint.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from mainstem import errors
from mainstem.errors import LostHost, MainstemError, first_line

WAIT = 120  # seconds to wait for the other hosts at the start
LONGEST = 160  # letters of an error of JAX
HEARTBEAT = 30  # seconds without a sign of life after which a host is gone
_GONE = re.compile(
    "gloo|nccl|coordination|connection|socket|unavailable|deadline_exceeded|barrier", re.IGNORECASE
)
_BLOCK = 1024  # bytes: messages of about one size share a program


@contextlib.contextmanager
def connected(count: int | None, host: int | None, coordinator: str | None) -> Iterator[None]:
    """Inside, this process is one of `count` hosts, number `host`; the first one listens at `coordinator`.

    What is None is detected from the variables of Slurm, Open MPI or Kubernetes. If another host is gone, the
    work ends with `LostHost`.
    """
    try:
        jax.distributed.initialize(
            coordinator,
            count,
            host,
            initialization_timeout=WAIT,
            heartbeat_timeout_seconds=HEARTBEAT,
        )
    except (RuntimeError, ValueError, OSError, KeyError) as error:
        where = f" at {coordinator}" if coordinator else ""
        raise MainstemError(
            f"the hosts cannot be connected{where}: {first_line(error, most=LONGEST)}"
        ) from None
    try:
        yield
    except (RuntimeError, ValueError) as error:  # of JAX, whose collectives failed
        if isinstance(error, MainstemError) or not _GONE.search(str(error)):
            raise
        raise LostHost(
            "another host is gone, or the network to it, so all hosts end: the same command, on any number of "
            f"hosts, resumes ({first_line(error, most=LONGEST)})"
        ) from None


def count() -> int:
    """The number of hosts; 1 if no other was connected."""
    return jax.process_count()


def number() -> int:
    """The number of this host, from 0 on."""
    return jax.process_index()


def first() -> bool:
    """Whether this is the first host, which writes what all have in common."""
    return number() == 0


def in_order(computed: Any) -> None:
    """Waits for what the hosts compute together, on CPUs: a small program that follows could overtake it there, on
    some of the hosts, and its messages would be taken for others."""
    if count() > 1 and jax.default_backend() == "cpu":
        jax.block_until_ready(computed)


def agreed(value: Any) -> Any:
    """What the first host calls with, on every host; all must call. JSON can represent it."""
    if count() == 1:
        return value
    from jax.experimental.multihost_utils import broadcast_one_to_all

    with jax.enable_x64(False):
        content = np.frombuffer(json.dumps(value).encode(), np.uint8)
        size = int(broadcast_one_to_all(np.int32(len(content))))
        block = np.zeros(-(-size // _BLOCK) * _BLOCK, np.uint8)
        if first():
            block[:size] = content
        return json.loads(bytes(np.asarray(broadcast_one_to_all(block), np.uint8)[:size]))


def by_first(work: Callable[[], None]) -> None:
    """Does `work` on the first host. When it is done all go on; if it is refused, then on every host."""
    if count() == 1:
        work()
        return
    fault: MainstemError | None = None
    if first():
        try:
            work()
        except MainstemError as error:
            fault = error
    refused = agreed(None if fault is None else [type(fault).__name__, str(fault)])
    if fault is not None:
        raise fault
    if refused is not None:
        raise getattr(errors, refused[0], MainstemError)(refused[1])


def same(what: str, value: Any) -> None:
    """Raises an error on a host whose `value` differs from the first host's."""
    theirs = agreed(value)
    if theirs != value:
        raise MainstemError(
            f"host {number()} has another {what} than the first host: {value!r}, not {theirs!r}"
        )
