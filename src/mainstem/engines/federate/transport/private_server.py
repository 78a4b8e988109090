"""A private NATS server: a child process on loopback that ends with this process."""

import contextlib
import json
import shutil
import socket
import subprocess
import sysconfig
import time
from pathlib import Path

from mainstem.disk import PRIVATE, private_folder, write
from mainstem.engines.federate.security import credentials
from mainstem.errors import MainstemError

START_TIMEOUT = 10.0  # seconds
CONFIGURATION = """\
listen: "127.0.0.1:{port}"
max_payload: 8MB
{users}jetstream {{
  store_dir: {store}
  sync_interval: {sync}
}}
"""

# Ends the server when the pipe to the parent process breaks, however that process ends; and ends with the server.
# Go shall collect garbage less often than by default: in a flood of messages the server would do little else.
SUPERVISOR = """
export GOGC="${GOGC:-400}" GOMEMLIMIT="${GOMEMLIMIT:-512MiB}"
exec 3<&0
"$0" -c "$1" 3<&- & server=$!
{ read -r _ <&3; kill "$server"; } & reader=$!
wait "$server"; code=$?
kill "$reader" 2>/dev/null
exit "$code"
"""


def executable() -> str:
    """The nats-server on the PATH, or the one that pip installed beside this Python."""
    found = shutil.which("nats-server") or shutil.which(
        "nats-server", path=sysconfig.get_path("scripts")
    )
    if found is None:
        raise MainstemError(
            "a private NATS server needs nats-server: pip install 'mainstem[federation]', or give --url"
        )
    return found


class PrivateServer:
    """A server on loopback with its data in `folder`.

    A restarted server has the same port, so that clients reconnect. With ``sync="always"`` JetStream writes every
    message to disk before it acknowledges it. With a path for the `secret` the server accepts only those who can
    read that file, which is written if it does not exist: any user of the machine can reach the loopback.
    """

    def __init__(self, folder: Path, sync: str = "always", secret: Path | None = None):
        self.folder = private_folder(folder)
        self.port = self._port()
        text = CONFIGURATION.format(
            port=self.port,
            store=json.dumps(str(folder.resolve())),
            sync=sync,
            users="" if secret is None else _users(secret),
        )
        write(folder / "server.conf", text, PRIVATE)
        self.start()

    def start(self) -> None:
        """Starts the server, and waits until it accepts connections."""
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", SUPERVISOR, executable(), str(self.folder / "server.conf")],
                stdout=log,
                stderr=log,
                stdin=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C goes to the hub alone, which stops the server
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"nats://127.0.0.1:{self.port}"

    def _port(self) -> int:
        file = self.folder / "port"
        if file.exists():
            return int(file.read_text())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        file.write_text(str(port))
        return port

    def _wait(self) -> None:
        end = time.monotonic() + START_TIMEOUT
        while time.monotonic() < end:
            if not self.running:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.02)
        log = self.folder / "server.log"
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        raise MainstemError(f"the private NATS server did not start, see {log}: {' '.join(last)}")

    def stop(self) -> None:
        """Stops the server, and waits until it has ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def _users(path: Path) -> str:
    """The line of the configuration that names the only user, whose secret key is in the file."""
    if not path.exists():
        write(path, credentials.bare(credentials.new_seed()), PRIVATE)
    key = credentials.public(credentials.seed_in(path))
    return f"authorization: {{ users: [ {{ nkey: {key} }} ] }}\n"
