"""The client's folder on disk: its state, and the uploads that the hub has not merged yet."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mainstem.disk import PRIVATE, lock, private_folder, write
from mainstem.engines.federate import event_log
from mainstem.engines.federate.client.state import ClientState, Progress
from mainstem.engines.federate.protocol.state_format import pack, unpack
from mainstem.errors import BrokenRun

DOCUMENT = "document.json"


class Persistence:
    """The folder of one client of one run. One process can use it at a time."""

    def __init__(self, folder: Path):
        self.folder = private_folder(folder)
        self._lock = lock(folder)
        count = folder / "client.count"
        if not count.exists() or count.stat().st_size != 8:
            write(count, bytes(8), PRIVATE)
        self._count = np.memmap(count, np.int64, "r+")

    @property
    def _file(self) -> Path:
        return self.folder / "client.state"

    @property
    def reached(self) -> int:
        """The step reached, written after every step to a memory-mapped file, which survives a kill."""
        return int(self._count[0])

    @reached.setter
    def reached(self, step: int) -> None:
        self._count[0] = step

    @staticmethod
    def document_in(folder: Path) -> bytes | None:
        """The run document with which a client has last joined from this folder."""
        file = folder / DOCUMENT
        return file.read_bytes() if file.is_file() else None

    def save_document(self, document: bytes) -> None:
        """Stores the run document, for a start without a connection."""
        file = self.folder / DOCUMENT
        if not file.is_file() or file.read_bytes() != document:
            write(file, document, PRIVATE)

    def save(self, state: ClientState, pending: dict[int, bytes]) -> None:
        """Writes the state and the pending uploads atomically. They are on disk when this returns."""
        write(self._file, stored(state, pending), PRIVATE)

    def load(self, state: ClientState) -> dict[int, bytes]:
        """Restores the state. Returns the uploads that were pending."""
        if not self._file.exists():
            return {}
        return restored(state, self._file.read_bytes(), str(self._file))

    def close(self) -> None:
        """Unlocks the folder."""
        del self._count
        self._lock.release()


def stored(state: ClientState, pending: Mapping[int, bytes]) -> bytes:
    """The state and the pending uploads as bytes. A state that is not finite is reset."""
    progress = state.totals()
    if not state.is_finite():
        state.reset("its model")
    values = {
        "digest": state.document.digest.hex(),
        "client": _first_name(state),
        "session": state.session,
        "progress": progress._asdict(),
        "pending": list(pending),
        "alone": None if state.alone is None else state.alone.values(),
    }
    leaves = jax.device_get(jax.tree.leaves(state.client))
    arrays: dict[str, Any] = {f"client {n}": leaf for n, leaf in enumerate(leaves)}
    for step, data in pending.items():
        arrays[f"upload {step}"] = np.frombuffer(data, np.uint8)
    if state.alone is not None:
        arrays |= state.alone.arrays()
    return pack(values, arrays)


def restored(state: ClientState, data: bytes, where: str) -> dict[int, bytes]:
    """Restores what `stored` gave. Returns the uploads that were pending."""
    found = unpack(data, where)
    here = state.document.digest.hex(), _first_name(state)
    if (found.values["digest"], found.values["client"]) != here:
        raise BrokenRun(f"{where}: belongs to another run or client: choose another folder")
    leaves, tree = jax.tree.flatten(state.client)
    kept = [found.arrays[f"client {n}"] for n in range(len(leaves))]
    with state.document.precision():
        client = jax.tree.unflatten(tree, [jax.numpy.asarray(each) for each in kept])
        state.restore(client, Progress(**found.values["progress"]))
    state.session = found.values["session"]
    _restore_alone(state, found.values.get("alone"), found.arrays, where)
    return {int(step): found.arrays[f"upload {step}"].tobytes() for step in found.values["pending"]}


def _restore_alone(
    state: ClientState,
    values: Mapping[str, Any] | None,  # None: not stored, as by earlier versions
    arrays: Mapping[str, np.ndarray],
    where: str,
) -> None:
    """Continues the model that the client learns alone; logs if what was stored is not continued."""
    if values is None or (state.alone is not None and state.alone.restore(values, arrays)):
        return
    why = (
        "it is not asked for" if state.alone is None else "its step is another one, or has no name"
    )
    text = f"{where}: the model that was learnt alone is dropped: {why}"
    client = state.document.clients[state.k]
    event_log.warning("alone_dropped", text, run=state.document.rules.run, client=client)


def _first_name(state: ClientState) -> str:
    """The name that the client had before it was renamed."""
    name = state.document.clients[state.k]
    return state.document.formerly.get(name, name)
