"""A real server from what `secure` writes, and connections to it."""

import contextlib
import socket
import subprocess
import time

import nats

from mainstem.engines.federate import broker, charter, credentials
from mainstem.engines.federate.hub import Hub

STEPS = 4
WAIT = 10.0  # seconds for what should take none


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(folder, port, *words):
    """A server within `folder`."""
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen(
        [broker.executable(), *words], cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL
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
    return charter.draw_up(
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
async def hubs(place):
    """The hub's connection, and the hub of each run on it; they take uploads and orders."""
    folder, url = place
    connection = await broker.connect(url, folder / "hub.creds")
    try:
        found = [Hub(agreed("r", ["a", "b"]), connection), Hub(agreed("other", ["c"]), connection)]
        for hub in found:
            await hub.open()
        yield connection, found
        await unheard(connection.jetstream())
    finally:
        await connection.close()


async def unheard(js):
    """Take away the hubs' ears at once, for the next test to count none but its own."""
    for name in ("ms-r-up", "ms-other-up"):
        for consumer in await js.consumers_info(name):
            await js.delete_consumer(name, consumer.name)


@contextlib.asynccontextmanager
async def intruder(place, name="a"):
    """nats-py itself with a user's credential, and the errors it is told."""
    folder, url = place
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
    """The server has all that was said. One flush will not do: its PING may overtake what waits."""
    await connection.flush()
    await connection.flush()


async def standing(connection, found):
    """All that a run has on the broker."""
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
    orders = [hub.status()["state"] for hub in found]
    return [(i.state.messages, i.state.last_seq, i.config.subjects) for i in infos], (
        latest,
        state.value,
        state.revision,
        listed,
        consumers,
        orders,
    )


def turned_away(why):
    """The server's word, or its closing the line before the word was read."""
    return "Authorization" in why or "reset" in why or "closed" in why
