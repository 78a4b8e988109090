"""A real server set up by `secure`, and connections to it."""

import contextlib
import socket
import subprocess
import time

import nats

from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.protocol import run_document as document
from mainstem.engines.federate.security import credentials
from mainstem.engines.federate.transport import connection as connections
from mainstem.engines.federate.transport import private_server

STEPS = 4
WAIT = 10.0  # seconds; what is waited for should take none


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(folder, port, *words):
    """A server within `folder`."""
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen(
        [private_server.executable(), *words],
        cwd=folder,
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + WAIT
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.02)
        yield process
    finally:
        process.terminate()
        process.wait(WAIT)
        log.close()


def agreed(run, clients):
    return document.parse(
        {
            "problem": {"name": "softmax", "features": 64, "classes": 10},
            "algorithm": {"name": "fedogd", "step": 0.1},
            "federate": {
                "run": run,
                "clients": clients,
                "pace": "lockstep",
                "steps": STEPS,
                "seed": 3,
            },
        }
    )


@contextlib.asynccontextmanager
async def hubs(secured_server):
    """The hub's connection, and the hub of each run on it; they accept uploads and commands."""
    folder, url = secured_server
    connection = await connections.connect(url, folder / "hub.creds")
    try:
        found = [Hub(agreed("r", ["a", "b"]), connection), Hub(agreed("other", ["c"]), connection)]
        for hub in found:
            await hub.open()
        yield connection, found
        await clean_up(connection.jetstream())
    finally:
        await connection.close()


async def clean_up(js):
    """Deletes the hubs' consumers at once, and what they have not read: the next test counts only its own."""
    for name in ("ms-r-up", "ms-other-up"):
        for consumer in await js.consumers_info(name):
            await js.delete_consumer(name, consumer.name)
        await js.purge_stream(name)


@contextlib.asynccontextmanager
async def intruder(secured_server, name="a"):
    """A connection of nats-py itself with a user's credential, and the errors that it receives."""
    folder, url = secured_server
    errors = []

    async def note(error):
        errors.append(str(error))

    known = credentials.options(folder / f"{name}.creds")
    connection = await nats.connect(url, error_cb=note, allow_reconnect=False, **known)
    try:
        yield connection, errors
    finally:
        await connection.close()


async def settled(connection):
    """Waits until the server has all that was sent. One flush is not enough: its PING may overtake messages."""
    await connection.flush()
    await connection.flush()


async def server_state(connection, found):
    """Everything that the runs have on the NATS server."""
    js = connection.jetstream()
    names = (
        "ms-r-up",
        "ms-r-down",
        "KV_ms-r-hub",
        "ms-other-up",
        "ms-other-down",
        "KV_ms-other-hub",
    )
    infos = [await js.stream_info(name) for name in names]
    latest = [
        (await js.get_msg(f"ms-{run}-down", subject=f"ms.{run}.{what}")).data
        for run in ("r", "other")
        for what in ("model.0", "spec", "status")
    ]
    state = await (await js.key_value("ms-r-hub")).get("state")
    listed = sorted(info.config.name for info in await js.streams_info())
    consumers = [len(await js.consumers_info(name)) for name in names]
    states = [hub.status()["state"] for hub in found]
    return [(i.state.messages, i.state.last_seq, i.config.subjects) for i in infos], (
        latest,
        state.value,
        state.revision,
        listed,
        consumers,
        states,
    )


def turned_away(why):
    """Whether the server refused access, or closed the connection before its refusal was read."""
    return "Authorization" in why or "reset" in why or "closed" in why
