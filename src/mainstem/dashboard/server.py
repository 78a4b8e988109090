"""The live page's server: binds its address, and answers until it is stopped."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import uvicorn

from mainstem.check import host_and_port
from mainstem.dashboard.app import application
from mainstem.dashboard.source import Source
from mainstem.errors import MainstemError

NICE = 10  # the priority of the page of a hub is lower by this
GRACE = 1  # seconds within which pages that are open may end


def source_of(what: str, run: str | None, credentials: Path | None) -> Source:
    """The source that a NATS server's address or a folder names. A server that refuses is an error at once."""
    if "://" not in what:
        from mainstem.dashboard.folders import Folder

        return Folder(Path(what))
    from mainstem.dashboard.federation import Federation

    federation = Federation(what, credentials, run)
    asyncio.run(federation.check())
    return federation


def serve(source: Source, listen: str, token: str, started: Callable[[str], None]) -> None:
    """Serves the page at HOST:PORT until a signal comes; `started` gets the address, with the token."""
    host, port = host_and_port("--listen", listen)
    with _bound(host, port) as bound:
        port = bound.getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        app = application(source, token, host, port)
        settings = uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=GRACE,
        )
        started(f"http://{name}:{port}/?token={token}")
        uvicorn.Server(settings).run(sockets=[bound])


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(128)  # from now on: whoever reads the address may ask at once
    except OSError as error:
        made.close()
        text = f"{host}:{port}: the page cannot be served: {error.strerror or error}"
        raise MainstemError(f"{text}; port 0 takes a free one") from None
    return made


def give_way() -> None:
    """Lowers the priority of this process, so that it takes only time that others do not need."""
    os.nice(NICE)


def end_with_parent() -> None:
    """Ends this process when its standard input is closed: the process that started it, a hub, has ended."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        os._exit(0)

    threading.Thread(target=wait, name="waits for the parent", daemon=True).start()


def default_token_file() -> Path:
    """Where the token of this user's pages is kept: the same after a restart, for pages that are left open."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "mainstem" / "dashboard.token"
