"""Earlier states of the server, to which a run can go back: one in so many merges, up to a limit."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from mainstem.disk import PRIVATE, private_folder, write
from mainstem.engines.federate.full_disk import Writer
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.protocol.state_format import pack, unpack
from mainstem.errors import BadData, MainstemError


class Earlier(NamedTuple):
    """An earlier state."""

    server: Any
    clients: tuple[str, ...]  # the roster of then


class Checkpoints:
    """The files of the folder `checkpoints`; without a folder there are none."""

    def __init__(self, folder: Path | None, aggregator: Aggregator):
        self._folder = None if folder is None else private_folder(folder / "checkpoints")
        self._aggregator = aggregator
        self._written = Writer(f"{self._folder}")

    @property
    def merges(self) -> list[int]:
        """The merges after which a state was stored."""
        files = [] if self._folder is None else self._folder.glob("*.state")
        return sorted(int(file.stem) for file in files if file.stem.isdigit())

    def store(self) -> None:
        """Stores the present state if it is its turn, and removes the oldest beyond the limit."""
        aggregator, rules = self._aggregator, self._aggregator.document.rules
        if (
            self._folder is None
            or not rules.checkpoints
            or aggregator.version % rules.checkpoint_every
        ):
            return
        values = {"clients": aggregator.document.clients}
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(aggregator.server)]
        arrays = {f"server {n}": leaf for n, leaf in enumerate(leaves)}
        data = pack(values, arrays | {"model": aggregator.model})
        file = self._folder / f"{aggregator.version}.state"
        self._written(lambda: write(file, data, PRIVATE, durable=False))
        for merge in self.merges[: -rules.checkpoints]:
            (self._folder / f"{merge}.state").unlink(missing_ok=True)

    def read(self, merge: int) -> Earlier:
        """The state that was stored after a merge."""
        known = self.merges
        if self._folder is None or merge not in known:
            listed = ", ".join(map(str, known[-8:])) or "none"
            raise MainstemError(
                f"there is no checkpoint of merge {merge}: the newest are those of {listed}"
            )
        file = self._folder / f"{merge}.state"
        found = unpack(file.read_bytes(), str(file))
        tree = jax.tree.structure(self._aggregator.server)
        leaves = [array for name, array in found.arrays.items() if name != "model"]
        if len(leaves) != len(jax.tree.leaves(self._aggregator.server)):
            raise BadData(f"{file}: is of another run")
        return Earlier(jax.tree.unflatten(tree, leaves), tuple(found.values["clients"]))
