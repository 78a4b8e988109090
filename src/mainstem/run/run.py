"""Run: the trace, the traffic, the models and the regret of a simulation."""

import functools
import html
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mainstem import check
from mainstem.base import Algorithm, Domain, Flat, Problem, Stream
from mainstem.errors import BadData, MainstemError
from mainstem.measure import binary, regression
from mainstem.measure.predicted import PREDICTED
from mainstem.measure.regret import Regret, regret_of
from mainstem.measure.solver import LEAVE
from mainstem.report import figures
from mainstem.run import folder as folders
from mainstem.run import trace as traces
from mainstem.run.comparator_cache import stored
from mainstem.run.drawing import over_clients, overlaid
from mainstem.run.exported import exported
from mainstem.run.rebuilding import of_the_run, rebuilt, why_not
from mainstem.run.summary import Summary, check_model, check_spec, check_trace, summary_of
from mainstem.theory.applied import beside
from mainstem.theory.bound import Bound, Rate

FROM_SCORES = {"auc": binary.auc, "f1": binary.f1, "log_loss": binary.log_loss}
FROM_PREDICTIONS = {"pinball": regression.pinball, "error_quantile": regression.error_quantile}
CURVES = {  # what is computed from the columns, each with the column that it needs
    **dict.fromkeys(FROM_SCORES, PREDICTED["scores"].predicted),
    **dict.fromkeys(FROM_PREDICTIONS, PREDICTED["predictions"].predicted),
    "accuracy": "correct",
    "downlink_bits": "downloads",
    "downlink_bytes": "downloads",
    "mse": "squared_error",
    "uplink_bits": "uploads",
    "uplink_bytes": "uploads",
}


class Run:
    """What `simulate` and `load` return. Curves are [steps], or [seeds, steps] for several seeds."""

    def __init__(
        self,
        spec: dict[str, Any] | Callable[[], dict[str, Any]],
        summary: Summary,
        trace: Mapping[str, np.ndarray],
        model: Mapping[str, np.ndarray],
        algorithm: Algorithm | None,
        problem: Problem | None,
        stream: Stream | Callable[[], Stream | None],
        domain: Domain | None,
        folder: Path | None = None,
    ):
        self._spec = spec
        self.summary = summary
        self.trace = trace
        self.models = model
        self.algorithm = algorithm
        self.problem = problem
        self._stream = stream
        self.domain = domain
        self.folder = folder  # where it was saved

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_spec": self.spec}

    @functools.cached_property
    def spec(self) -> dict[str, Any]:
        """What was run, in the form of an experiment file."""
        return self._spec() if callable(self._spec) else self._spec

    @functools.cached_property
    def stream(self) -> Stream | None:
        """The stream, if it is available; for a loaded run it is rebuilt on first access."""
        return self._stream if isinstance(self._stream, Stream) else self._stream()

    def __repr__(self) -> str:
        size = self.summary
        found = f"{size.steps} steps, {size.clients} clients, {len(size.seeds)} seed(s)"
        return f"<Run {self.name}: {found}{', ' if self.diverged else ''}{self.diverged}>"

    def _repr_html_(self) -> str:
        """The last values and the curve, in a notebook."""
        from mainstem.run.comparison import compare

        return f"<p>{html.escape(repr(self))}</p>{compare(self)._repr_html_()}"

    @property
    def diverged(self) -> str:
        """Where losses stopped being finite, in words; empty if all losses are finite."""
        if not self.summary.diverged:
            return ""
        seed, step, count, *clients = self.summary.diverged[0]
        who = f"client{'s' if count > 1 else ''} {', '.join(map(str, clients))}"
        if count > len(clients):
            who = f"{count} of {self.summary.clients} clients"
        many = len(self.summary.seeds)
        seeds = f" of seed {seed}, and {len(self.summary.diverged)} of {many} seeds in all"
        return f"diverged at step {step}, {who}{seeds if many > 1 else ''}"

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The label of each class in the data, if it is not the number of the class."""
        return None if self.summary.labels is None else tuple(self.summary.labels)

    @property
    def name(self) -> str:
        """The algorithm's name."""
        return str(self.spec["algorithm"][0]["name"])

    @property
    def columns(self) -> list[str]:
        """The names of the columns recorded at each step."""
        return list(self.trace)

    def column(self, name: str) -> np.ndarray:
        """A recorded column."""
        name = name.replace(" ", "_")
        if name not in self.trace and (name == "regret" or CURVES.get(name) in self.trace):
            asked = "run.regret()" if name == "regret" else f"run.curve({name!r})"
            raise MainstemError(f"run: {name} is computed from columns: {asked}")
        if name not in self.trace:
            curves = [curve for curve, needs in CURVES.items() if needs in self.trace]
            known = check.listed(name, [*curves, "regret", *self.trace])
            raise MainstemError(f"run: {name} was not recorded; there are {known}")
        values = self.trace[name]
        return values if len(self.summary.seeds) > 1 else values[0]

    @property
    def loss(self) -> np.ndarray:
        """The mean over clients of the loss at each step, or over a block of steps (`every`)."""
        return self.column("loss")

    @property
    def t(self) -> np.ndarray:
        """The steps of the curves: all, or the last ones of the blocks of `simulate(every=...)`."""
        every = self.summary.every
        return np.arange(every, self.summary.steps + 1, every)

    def running(self, name: str) -> np.ndarray:
        """The running mean of a column, over the clients and steps with a sample."""
        values = self.column(name)
        present = self.column("present") if "present" in self.trace else np.ones_like(values)
        means = np.cumsum(values, axis=-1) / np.maximum(np.cumsum(present, axis=-1), 1e-12)
        return self._while_finite(means)

    def _while_finite(self, curve: np.ndarray) -> np.ndarray:
        """The curve, NaN from the step on at which a seed diverged: a guess from NaN can be right by chance."""
        if not self.summary.diverged:
            return curve
        rows = np.array(np.atleast_2d(curve), float)
        for seed, step, *_ in self.summary.diverged:
            rows[self.summary.seeds.index(seed), (step - 1) // self.summary.every :] = np.nan
        return rows if len(self.summary.seeds) > 1 else rows[0]

    @property
    def accuracy(self) -> np.ndarray:
        """Accuracy(t) of Kwon et al. 2023: the share of correct answers, over clients and steps so far."""
        return self.running("correct")

    @property
    def mse(self) -> np.ndarray:
        """MSE(t) of Kwon et al. 2023: the mean squared error, over clients and steps so far."""
        return self.running("squared_error")

    def _sent(self, name: str, each: float) -> np.ndarray:
        return np.asarray(np.cumsum(self.column(name), axis=-1) * self.summary.every * each)

    @property
    def uplink_bits(self) -> np.ndarray:
        """Cumulative uplink bits, by the codec's formula."""
        return self._sent("uploads", self.summary.uplink_bits)

    @property
    def uplink_bytes(self) -> np.ndarray:
        """Cumulative uplink bytes, as packed."""
        return self._sent("uploads", self.summary.uplink_bytes)

    @property
    def downlink_bits(self) -> np.ndarray:
        """Cumulative downlink bits, counted for each client that receives."""
        return self._sent("downloads", self.summary.downlink_bits)

    @property
    def downlink_bytes(self) -> np.ndarray:
        """Cumulative downlink bytes, counted for each client that receives."""
        return self._sent("downloads", self.summary.downlink_bytes)

    @property
    def uplink_saving(self) -> float:
        """The share of the uplink saved, relative to plain uploads by all clients at every step."""
        word, size = 8 * np.dtype(self.summary.dtype).itemsize, np.shape(self.models["server"])[-1]
        plain = word * size * self.summary.clients * self.summary.steps
        return float(1 - np.mean(self.uplink_bits[..., -1]) / plain)

    @property
    def model(self) -> Any:
        """The server's final model, in the structure of the problem's parameters.

        A vector if the problem is unknown; only the shared part if clients have an own part.
        """
        return self.unravelled(self.models["server"])

    @property
    def client_models(self) -> np.ndarray:
        """Each client's final model, as vectors."""
        if "clients" in self.models:
            return np.asarray(self.models["clients"])
        server = np.asarray(self.models["server"])
        return np.repeat(server[..., None, :], self.summary.clients, axis=-2)

    def unravelled(self, vector: np.ndarray) -> Any:
        """A model in the structure of the problem's parameters.

        Unchanged if the problem is unknown, or for several seeds.
        """
        if self.problem is None or len(self.summary.seeds) > 1:
            return np.asarray(vector)
        if vector.shape[-1] < self.problem.parameters:
            own = np.zeros(self.problem.parameters - vector.shape[-1], vector.dtype)
            return Flat(self.problem).unravel(np.concatenate([vector, own])).shared
        return Flat(self.problem).unravel(np.asarray(vector))

    def regret(
        self,
        at: Sequence[int] | str | None = None,
        *,
        kind: str | None = None,
        radius: float = 10.0,
        stream: Stream | None = None,
    ) -> Regret:
        """Regret against the best fixed model in hindsight, with its certificate.

        `at`: the prefixes, each compared with the best model *for that prefix* (None: all steps;
        "curve": twenty of them; "all": every prefix, cheap only with a closed form). `kind`: global
        (the shared model on each client's data), collective (every client's model on the data of all
        clients), personal (each client's model on its own data, against the jointly best shared and own
        parts), dynamic (against the best model of *each step*, for quadratic losses), expected or
        virtual. Default: personal for problems with an own part, otherwise the first of collective and
        global that was measured. `radius` is that of the ball for problems without a minimiser. A run
        loaded from a folder needs `stream` if its stream was in memory.
        """
        source = self.stream if stream is None else stream
        if self.problem is None:
            raise BadData(
                "regret: the run's problem is not known here: ms.load(folder, problem=...)"
            )
        if source is None:
            raise BadData(f"regret: {why_not(self.spec['stream'])}: give regret(stream=...)")
        if stream is not None:
            of_the_run("stream", stream, self.spec["stream"])
        if self.domain is None:
            raise BadData(
                "regret: the run's algorithm is not known here: ms.load(folder, algorithm=...)"
            )
        if source.clients != self.summary.clients:
            raise BadData(
                f"regret: the run had {self.summary.clients} clients, not {source.clients}"
            )
        weights = self.spec["simulate"].get("weights")
        found = regret_of(
            self.trace,
            self.problem,
            source,
            self.domain,
            start=np.asarray(self.models["server"]),
            seeds=self.summary.seeds,
            shared=self.summary.shared,
            steps=self.summary.steps,
            every=self.summary.every,
            at=at,
            kind=kind,
            radius=radius,
            weights=None if weights is None else np.asarray(weights),
            solve=stored(self.folder, self.problem, source),
        )
        if self.algorithm is None or not self.algorithm.domain.whole or self.problem.domain.whole:
            return found
        return found._replace(title=f"{found.title}, {LEAVE}")

    def to_pandas(self) -> Any:
        """The trace and the curves as a data frame, one row for each step and seed."""
        curves = {
            name: np.atleast_2d(self.curve(name))
            for name, needs in CURVES.items()
            if needs in self.trace
        }
        return traces.table(dict(self.trace) | curves, self.t, self.summary.seeds).to_pandas()

    def bound(self, at: Sequence[int] | None = None) -> Bound | Rate:
        """The bound of the algorithm's theorem for this run, with the constants measured on its stream.

        In the paper's units, for the prefixes `at` (default: all steps). A theorem that holds only up
        to a constant gives a `Rate`, with its constant fitted to the run. Raises an error that names the
        condition if an assumption fails.
        """
        return beside(self, [self.summary.steps] if at is None else at).bound

    def plot(self, curve: str = "loss", bound: bool = False) -> Any:
        """A figure of one curve (loss, accuracy, auc, uplink_bits, regret, ...), with the spread over seeds.

        Of a column with a number for each client, such as "loss per client", it shows quantiles over the clients.

        With `bound` the curve is the quantity that the algorithm's theorem bounds, in the paper's
        units, and the bound is dashed.
        """
        if bound:
            return overlaid({self.name: beside(self)})
        if curve == "regret":
            found = self.regret("curve")
            values = {self.name: np.atleast_2d(found.values)}
            return figures.curves(values, f"{found.kind}_regret", steps=found.steps)
        curve = curve.replace(" ", "_")
        each = traces.per_client(curve)
        if each is not None and curve in self.trace:
            steps = np.arange(each.every, self.summary.steps + 1, each.every)
            label = f"running mean of {curve}"
            return figures.curves(over_clients(self.trace[curve]), label, steps=steps)
        return figures.curves({self.name: np.atleast_2d(self.curve(curve))}, curve, steps=self.t)

    def curve(self, name: str) -> np.ndarray:
        """A curve by its name: accuracy, mse, auc, bits and bytes sent so far, or a recorded column."""
        for curves in (FROM_SCORES, FROM_PREDICTIONS):
            if name in curves:
                return self._while_finite(curves[name](self))
        return np.asarray(getattr(self, name) if name in CURVES else self.column(name))

    def report(self, path: str | Path, *, regret: bool | None = None, title: str = "") -> Path:
        """Writes a page, one HTML file that needs no network, that shows what was run and its curves.

        `regret` says whether the best models in hindsight are computed, with the bound of the theorem; None:
        where that takes seconds. `ms.compare(runs).report(path)` shows several runs.
        """
        from mainstem.run.comparison import compare

        return compare(self).report(path, regret=regret, title=title)

    def export(
        self,
        path: str | Path,
        *,
        client: int | str | None = None,
        seed: int | None = None,
        features: Sequence[str] | None = None,
    ) -> Path:
        """Writes the final model for other programs: safetensors, for `ms.load_model` too, or a graph if the path
        ends with .onnx.

        The server's model, or that of a `client` (its number or its name), which is needed if clients have an own
        part or never uploaded; `seed` is needed if the run has several. `features` are their names, by which a
        loaded model takes dicts and data frames; by default those that the stream was given. Beside the arrays are
        the problem, the labels, what was run, and what each client's features are filled and scaled by.
        """
        return exported(self, Path(path), client, seed, features)

    def save(self, path: str | Path) -> Path:
        """Writes the run into a new folder: spec, environment, trace, model."""
        place = Path(path)
        held = folders.claim(place, self.spec)
        try:
            self._write(place)
        finally:
            held.release()
        self.folder = place
        return place

    def _write(self, place: Path) -> None:
        folders.add_part(place, 0, dict(self.trace), self.t, self.summary.seeds)
        folders.finish(place, 1, self.models, self.summary._asdict())


def load(
    path: str | Path,
    *,
    algorithm: Algorithm | None = None,
    problem: Problem | None = None,
    stream: Stream | None = None,
) -> Run:
    """Loads the run in a folder; its algorithm, problem and stream are rebuilt where the spec allows.

    Pass them if they came from your own code or data, or if they are already in memory.
    """
    place = Path(path)
    spec, content, model, trace = folders.read(place)
    summary = summary_of(place, content)
    check_spec(place, spec)
    check_model(place, model, summary)
    check_trace(place, trace, summary)
    of_the_run("algorithm", algorithm, spec["algorithm"][0])
    of_the_run("problem", problem, spec["problem"])
    of_the_run("stream", stream, spec["stream"])
    algorithm, problem, source, domain = rebuilt(spec, algorithm, problem, stream)
    return Run(spec, summary, trace, model, algorithm, problem, source, domain, place)
