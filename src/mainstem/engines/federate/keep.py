"""What a client keeps on its own disk: where it is, and the uploads that the hub has not taken in yet."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from mainstem.disk import lock, write
from mainstem.engines.federate.bundle import pack, unpack
from mainstem.engines.federate.member import Member, Standing
from mainstem.errors import BrokenRun


class Keep:
    """A folder for one client of one run, used by one process at a time."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock = lock(folder)
        count = folder / "client.count"
        if not count.exists() or count.stat().st_size != 8:
            write(count, bytes(8))
        self._count = np.memmap(count, np.int64, "r+")

    @property
    def _file(self) -> Path:
        return self.folder / "client.state"

    @property
    def reached(self) -> int:
        """How many samples it has learnt from; a kill leaves it, and costs nothing to note."""
        return int(self._count[0])

    @reached.setter
    def reached(self, step: int) -> None:
        self._count[0] = step

    def save(self, member: Member, pending: dict[int, bytes]) -> None:
        """All or nothing, and on the disk when this returns."""
        standing = member.count()
        values = {"digest": member.charter.digest.hex(), "k": member.k}
        values |= {"standing": standing._asdict(), "pending": list(pending)}
        leaves = jax.device_get(jax.tree.leaves(member.client))
        arrays: dict[str, Any] = {f"client {n}": leaf for n, leaf in enumerate(leaves)}
        for step, data in pending.items():
            arrays[f"upload {step}"] = np.frombuffer(data, np.uint8)
        write(self._file, pack(values, arrays))

    def load(self, member: Member) -> dict[int, bytes]:
        """Put `member` where it was; its uploads that are still under way."""
        try:
            return self._loaded(member) if self._file.exists() else {}
        except BaseException:
            self.close()
            raise

    def _loaded(self, member: Member) -> dict[int, bytes]:
        found = unpack(self._file.read_bytes(), str(self._file))
        here = member.charter.digest.hex(), member.k
        if (found.values["digest"], found.values["k"]) != here:
            raise BrokenRun(f"{self.folder}: is of another run or client: choose another folder")
        leaves, tree = jax.tree.flatten(member.client)
        stored = [found.arrays[f"client {n}"] for n in range(len(leaves))]
        with member.charter.precise():
            client = jax.tree.unflatten(tree, [jax.numpy.asarray(each) for each in stored])
            member.put(client, Standing(**found.values["standing"]))
        return {
            int(step): found.arrays[f"upload {step}"].tobytes() for step in found.values["pending"]
        }

    def close(self) -> None:
        """Let others use the folder."""
        del self._count
        self._lock.close()
