"""A copy of the hub's state in its folder, which the hub reads if the NATS server has lost the state."""

from pathlib import Path

from mainstem.disk import PRIVATE, write
from mainstem.engines.federate import event_log
from mainstem.engines.federate.full_disk import Writer
from mainstem.engines.federate.protocol.state_format import unpack
from mainstem.engines.federate.transport.state_store import StoredState
from mainstem.errors import BadData, BrokenRun


class StateCopy:
    """The file RUN.state in the hub's folder."""

    def __init__(self, folder: Path | None, run: str):
        self._path = None if folder is None else folder / f"{run}.state"
        self._written = Writer(str(self._path))
        self._newest: bytes | None = None  # a state that is not written yet

    @property
    def failed(self) -> OSError | None:
        """Why the last write has failed."""
        return self._written.failed

    def read(self) -> StoredState | None:
        """The copy; None if there is none, or if it is damaged, which is logged."""
        if self._path is None or not self._path.exists():
            return None
        data = self._path.read_bytes()
        try:
            values = unpack(data, str(self._path)).values
            return StoredState(values["epoch"], values["version"], data)
        except (BadData, KeyError) as error:
            event_log.warning(
                "copy_damaged", f"{error}: the state on the NATS server is taken instead"
            )
            return None

    def note(self, data: bytes) -> None:
        """Remembers the newest state, for the next `write`: a file for each merge would slow rounds by a tenth."""
        self._newest = data

    def write(self) -> None:
        """Replaces the copy, if there is a newer state. It survives a kill; after a power cut it may be older."""
        path, data = self._path, self._newest
        if path is not None and data is not None:
            self._written(lambda: write(path, data, PRIVATE, durable=False))
            self._newest = data if self._written.failed else None


def later(server: StoredState | None, folder: StoredState | None, run: str) -> StoredState | None:
    """The later of two states. One of a later epoch with fewer merges is not: somebody must decide."""
    if server is None or folder is None:
        return server or folder
    newer, older = (server, folder) if server.age >= folder.age else (folder, server)
    if newer.epoch == older.epoch or newer.version >= older.version:
        return newer
    raise BrokenRun(
        f"{run}: the NATS server has merge {server.version}, the hub's folder merge {folder.version}; they have "
        f"parted, and the {'server' if newer is server else 'folder'} is newer: to go on with the server's, move "
        f"the file {run}.state away; to go on with the folder's, delete the bucket ms-{run}-hub on the server"
    )
