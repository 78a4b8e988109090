"""The server of a federated run as a Flower app: the hub's aggregator behind Flower's strategy."""

import math
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp import strategy as strategies

from mainstem.engines.federate import event_log
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.model_file import nested, write_model
from mainstem.engines.federate.hub.start_model import with_start
from mainstem.engines.federate.protocol.messages import Refused, pack_broadcast
from mainstem.engines.federate.protocol.run_document import encode, parse, read
from mainstem.errors import MainstemError
from mainstem.flower.client import TABLE
from mainstem.run.model_file import tensors

BLOCK = 10**6
TIMEOUT = 3600.0  # seconds
LOOK = 0.5  # seconds between two looks for nodes


def server_app(
    experiment: str | Path | Mapping[str, Any],
    *,
    folder: str | Path | None = None,
    timeout: float = TIMEOUT,
) -> ServerApp:
    """The app of the server: all steps of a run.

    `experiment` is a run document, as `mainstem hub` takes it: its file or its content. `timeout` is how many
    seconds a round waits for answers, and the first one for sites. The last model is written to the `folder`, as
    `model.safetensors`.
    """

    def main(grid: Grid, context: Context) -> None:
        strategy = Strategy(experiment)
        strategy.finish(grid, timeout)
        if folder is not None:
            strategy.save(folder)

    app = ServerApp()
    app.main()(main)
    return app


class Strategy(strategies.Strategy):  # type: ignore[misc] # Flower is not there when types are checked
    """A federated run as a strategy: every round, each site learns up to its next sync.

    In lockstep a round whose sites have not all answered is asked again. At the free pace it merges what has
    come. A run has as many `rounds` as syncs.
    """

    def __init__(self, experiment: str | Path | Mapping[str, Any]):
        if isinstance(experiment, Mapping):
            document = with_start(parse(experiment), Path())
        else:
            document = with_start(read(experiment), Path(experiment).parent)
        if document.rules.steps is None:
            raise MainstemError("[federate] needs steps: a run of Flower has an end")
        self._last: int = document.rules.steps
        self._document = document
        self._described = encode(document)
        self._aggregator = Aggregator(document)
        self._aggregator.begin_epoch(1, 1)
        self._clients: dict[int, int] = {}  # places in the roster, by node
        self._timeout = TIMEOUT
        everyone = len(document.clients)
        self.steps = np.zeros(everyone, np.int64)  # that each client has learnt
        self.losses = np.zeros(everyone)  # of all these steps, for each client
        self._since = np.zeros(everyone, np.int64)  # the step at which the sums of a client begin
        self._lost = np.zeros(everyone)  # losses before that

    @property
    def rounds(self) -> int:
        """Rounds until the end."""
        first, sync = int(self.steps.min()), self._document.algorithm.sync
        if first == self._last:
            return 0
        blocks = range(first, self._last, BLOCK)  # of steps
        syncs = sum(
            int(sync.after(np.arange(n + 1, min(n + BLOCK, self._last) + 1)).sum()) for n in blocks
        )
        return syncs + (not sync.after(np.array([self._last]))[0])

    @property
    def arrays(self) -> ArrayRecord:
        """The model, or its shared part, by the names that its arrays have in the problem."""
        found = tensors(nested(self._document, self._aggregator.model))
        return ArrayRecord({name: Array(value) for name, value in found.items()})

    def finish(self, grid: Grid, timeout: float = TIMEOUT) -> None:
        """Runs all rounds that are left. Raises MainstemError if sites are missing in lockstep."""
        while rounds := self.rounds:
            before = self.steps.sum()
            self.start(grid, self.arrays, num_rounds=rounds, timeout=timeout)
            if self.steps.sum() > before:
                continue
            names = zip(self._document.clients, self._wanted(), strict=True)
            missing = ", ".join(name for name, wanted in names if wanted)
            text = f"no answer in {rounds} rounds from {missing}"
            if self._document.lockstep:
                raise MainstemError(f"{self._document.rules.run}: {text}")
            event_log.warning("sites_missing", text, run=self._document.rules.run)
            return

    def save(self, folder: str | Path) -> Path:
        """Writes the model to a folder; `ms.load_model` reads it."""
        return write_model(Path(folder), self._aggregator)

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = TIMEOUT,
        **others: Any,
    ) -> strategies.Result:
        """Runs rounds, as every strategy of Flower; the first waits for sites no longer than `timeout` seconds."""
        self._timeout = timeout
        return super().start(grid, initial_arrays, num_rounds, timeout, **others)

    # --- what Flower calls -------------------------------------------------------------------------

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The messages of a round, to the sites whose answers are wanted."""
        self._check(arrays)
        broadcast = pack_broadcast(self._aggregator.broadcast())
        asked = ConfigRecord({"document": self._described, "broadcast": broadcast})
        return [
            Message(RecordDict({TABLE: asked}), dst_node_id=node, message_type="train")
            for node in self._nodes(grid)
        ]

    def _check(self, arrays: ArrayRecord) -> None:
        given = {name: array.numpy() for name, array in arrays.items()}
        mine = tensors(nested(self._document, self._aggregator.model))
        if given.keys() != mine.keys() or any(
            not np.array_equal(given[name], mine[name]) for name in mine
        ):
            raise MainstemError(
                "the arrays are not this strategy's: pass initial_arrays=strategy.arrays; to begin with another "
                'model, write it to a file and name it in the experiment: [federate] start = "model.safetensors"'
            )

    def _nodes(self, grid: Grid) -> list[int]:
        """The nodes to ask, once there are as many as clients; at first all."""
        everyone = len(self._document.clients)
        end = time.monotonic() + self._timeout
        while len(nodes := list(grid.get_node_ids())) < everyone and not self._clients:
            if time.monotonic() > end:
                self._begin_without(everyone - len(nodes))
                break
            time.sleep(LOOK)
        wanted = self._wanted()
        return [node for node in nodes if node not in self._clients or wanted[self._clients[node]]]

    def _begin_without(self, missing: int) -> None:
        """Raises MainstemError if the run cannot begin without so many sites."""
        run, everyone = self._document.rules.run, len(self._document.clients)
        text = f"{missing} of {everyone} sites have not come in {self._timeout:g} seconds"
        if self._document.lockstep or missing == everyone:
            raise MainstemError(f"{run}: {text}: start their SuperNodes, or give a longer timeout")
        event_log.warning("sites_missing", text, run=run)

    def _wanted(self) -> np.ndarray:
        """For each client, whether the next round asks it."""
        if self._document.lockstep and self._aggregator.due:
            return self._aggregator.missing()
        found: np.ndarray = self.steps < self._last
        return found

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Takes the answers of a round, and merges if it is time."""
        before = self.losses.sum(), self.steps.sum()
        for reply in replies:
            try:
                self._received(reply)
            except (MainstemError, KeyError, TypeError, ValueError) as error:
                text = f"node {reply.metadata.src_node_id}: {type(error).__name__}: {error}"
                event_log.warning("site_failed", text, run=self._document.rules.run)
        metrics = self._metrics(*before)
        if not self._merges():
            return None, metrics
        self._aggregator.merge()
        return self.arrays, metrics

    def _received(self, reply: Message) -> None:
        """Takes the uploads of a site."""
        if reply.has_error():
            raise MainstemError(reply.error.reason)
        found = reply.content[TABLE]
        name, step, since, loss = (found[key] for key in ("client", "step", "since", "loss"))
        if name not in self._aggregator.indices:
            raise MainstemError(f"{name!r} is no client")
        if not 0 <= since <= step <= self._last or not math.isfinite(loss):
            raise MainstemError(f"{name}: step {step} since {since} with the loss {loss}")
        k = self._aggregator.indices[name]
        self._clients[reply.metadata.src_node_id] = k
        for upload in found["uploads"]:
            try:
                self._aggregator.accept(name, upload, sequence=0)
            except Refused as refusal:
                event_log.warning(
                    "refused", str(refusal), run=self._document.rules.run, client=name
                )
        if since != self._since[k]:  # its state was lost
            self._since[k], self._lost[k] = since, self.losses[k]
        self.steps[k], self.losses[k] = step, self._lost[k] + loss

    def _merges(self) -> bool:
        aggregator = self._aggregator
        if self._document.lockstep:
            return bool(aggregator.due) and aggregator.is_complete()
        return aggregator.has_quorum()

    def _metrics(self, losses: float, steps: int) -> MetricRecord:
        """The mean loss of all samples so far, and of those of this round."""
        found = {
            "samples": int(self.steps.sum()),
            "mean_loss": _mean(self.losses.sum(), self.steps.sum()),
        }
        found["round_loss"] = _mean(self.losses.sum() - losses, self.steps.sum() - steps)
        return MetricRecord(found)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Nothing: each sample was a test before it was learnt."""
        return []

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Nothing."""
        return None

    def summary(self) -> None:
        """Logs what runs."""
        document = self._document
        event_log.info(
            "begins", f"{document.algorithm} on {document.source}", run=document.rules.run
        )


def _mean(total: float, count: int) -> float:
    return float(total / count) if count else 0.0
