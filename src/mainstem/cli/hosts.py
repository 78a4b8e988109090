"""Several hosts: the options of commands that compute on several machines at once.

The work is done in a child process. JAX ends a process by itself if the first host is gone; its parent is there to
say so in one line. What libraries print past Python is kept, and shown if the child ends without an explanation.
"""

import contextlib
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import IO, Annotated, NoReturn

import typer

from mainstem.cli.failures import REFUSED, end_now, explained

Hosts = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        help="Run on this many hosts; auto: as Slurm, Open MPI or Kubernetes started them.",
    ),
]
Host = Annotated[
    int | None, typer.Option("--host", help="The number of this host, from 0 on.", min=0)
]
Coordinator = Annotated[
    str | None, typer.Option("--coordinator", help="ADDRESS:PORT of host 0, which listens there.")
]
AUTO = "auto"
_OF_JAX = re.compile("distributed service|coordination")


@contextlib.contextmanager
def several(hosts: str | None, host: int | None, coordinator: str | None) -> Iterator[bool]:
    """Connects the hosts, if several are asked for; yields whether this one prints and draws."""
    count = _count(hosts, host, coordinator)
    if hosts is None:
        yield True
        return
    if hasattr(os, "fork"):
        _continue_in_child()
    from mainstem.engines.simulate.hosts import connected, first

    try:
        with connected(count, host, coordinator):
            yield first()
    except typer.Exit:
        raise
    except Exception as error:
        end_now(explained(error))  # an orderly exit would wait for hosts that are gone


def _count(hosts: str | None, host: int | None, coordinator: str | None) -> int | None:
    """The number of hosts; None: to be detected, or not asked for."""
    given = host is not None, coordinator is not None
    if hosts is None or hosts == AUTO:
        if any(given):
            wanted = "--host and --coordinator need --hosts N, a number"
            raise typer.BadParameter(wanted, param_hint="--hosts")
        return None
    if not hosts.isdecimal() or int(hosts) < 1:
        raise typer.BadParameter(f"must be a number or {AUTO}, got {hosts!r}", param_hint="--hosts")
    if not all(given):
        wanted = "--hosts N needs --host, the number of this one, and --coordinator, the address of host 0"
        raise typer.BadParameter(wanted, param_hint="--hosts")
    if host is not None and host >= int(hosts):
        raise typer.BadParameter(
            f"must be below the {hosts} hosts, got {host}", param_hint="--host"
        )
    if coordinator is not None and not re.fullmatch(r".+:\d+", coordinator):
        raise typer.BadParameter(
            f"must be ADDRESS:PORT, got {coordinator!r}", param_hint="--coordinator"
        )
    return int(hosts)


def _continue_in_child() -> None:
    """Returns in a child process; the parent waits for it and ends with its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    noise = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 # both processes use it
    alive, held = os.pipe()
    child = os.fork()
    if child:
        os.close(alive)
        _wait_for(child, noise)
    os.close(held)
    os.setpgid(0, 0)  # the parent passes signals on
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
    for number, name in ((1, "stdout"), (2, "stderr")):
        setattr(sys, name, os.fdopen(os.dup(number), "w", buffering=1))
        os.dup2(noise.fileno(), number)


def _end_with_parent(alive: int) -> None:
    """Ends this process when the parent, which holds the other end of the pipe, has ended."""
    os.read(alive, 1)
    os._exit(REFUSED)


def _wait_for(child: int, noise: IO[str]) -> NoReturn:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda number, frame: os.kill(child, number))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        noise.seek(0)
        output = noise.read()
        line = f"this host was ended by {signal.Signals(-code).name}"
        if _OF_JAX.search(output):
            line = "another host is gone, or the network to it, so all hosts end: the same command resumes"
        else:
            sys.stderr.write(output)
        print(f"mainstem: {line}", file=sys.stderr)
        code = REFUSED
    end_now(code)
