"""Real NATS servers that a test configures, kills and starts again: a cluster, and a leaf."""

import asyncio
import json
import signal
import socket
import subprocess
import time
from pathlib import Path

from mainstem.engines.federate.protocol.subjects import Subjects
from mainstem.engines.federate.transport import connection as connections
from mainstem.engines.federate.transport import private_server

STORED = """\
server_name: {name}
listen: "127.0.0.1:{port}"
max_payload: 8MB
jetstream {{
  store_dir: {store}
  sync_interval: always
}}
"""
CLUSTERED = """\
cluster {{
  name: hub
  listen: "127.0.0.1:{route}"
  routes: {routes}
}}
"""


def ports(count: int) -> list[int]:
    """Free ports of the loopback interface."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    found = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return found


class Server:
    """A server with its own configuration; it restarts at the same port with the same data."""

    def __init__(self, folder: Path, name: str, port: int, text: str, **fields: object):
        self.name = name
        self.port = port
        self.url = f"nats://127.0.0.1:{port}"
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "server.conf"
        store = json.dumps(str(folder / "data"))
        self._file.write_text(text.format(name=name, port=port, store=store, **fields))
        self._log = folder / "server.log"
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [private_server.executable(), "-c", str(self._file)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + 20
        while not self._there():
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < end, self._log.read_text()
            time.sleep(0.05)

    def _there(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """As when its machine fails: without closing connections."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Cluster:
    """Three servers; every stream is replicated on all of them."""

    def __init__(self, folder: Path, names: tuple[str, ...] = ("a", "b", "c")):
        found = ports(2 * len(names))
        listening, routes = found[: len(names)], found[len(names) :]
        known = json.dumps([f"nats://127.0.0.1:{route}" for route in routes])
        self.servers = {
            name: Server(folder / name, name, port, STORED + CLUSTERED, route=route, routes=known)
            for name, port, route in zip(names, listening, routes, strict=True)
        }
        self.whole()

    @property
    def url(self) -> str:
        return ",".join(server.url for server in self.servers.values())

    def whole(self) -> None:
        """Waits until the servers that run can create streams."""
        asyncio.run(self._whole())

    async def _whole(self) -> None:
        connection = await connections.connect(self.url)
        end = time.monotonic() + 30
        while True:
            try:
                await connection.jetstream(timeout=1).account_info()
                break
            except Exception:
                assert time.monotonic() < end, "the cluster has no leader"
                await asyncio.sleep(0.1)
        await connection.close()

    def roles(self, run: str) -> tuple[str, list[str]]:
        """(leader, followers) of the stream of uploads of a run."""
        return asyncio.run(self._roles(Subjects(run).upload_stream))

    async def _roles(self, stream: str) -> tuple[str, list[str]]:
        connection = await connections.connect(self.url)
        found = (await connection.jetstream(timeout=5).stream_info(stream)).cluster
        await connection.close()
        assert found is not None
        assert found.leader is not None
        return found.leader, sorted(each.name for each in found.replicas or [])

    def stop(self) -> None:
        for server in self.servers.values():
            server.kill()
