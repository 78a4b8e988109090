"""Tracking in MLflow: a database on this machine, or a server."""

import time
from collections.abc import Mapping
from typing import Any

from mainstem.errors import MainstemError, first_line
from mainstem.tracking.tracker import Tracker, flat

LONGEST = 500  # letters of a parameter


class Runs(Tracker):
    """Writes runs of an experiment."""

    def __init__(self, uri: str | None, experiment: str):
        try:
            import mlflow
            from mlflow.entities import Metric, Param, RunTag
            from mlflow.exceptions import MlflowException
        except ImportError:
            text = "MLflow is not installed: pip install 'mainstem[mlflow]'"
            raise MainstemError(text) from None
        self._experiment = experiment
        self._metric, self._parameter, self._tag = Metric, Param, RunTag
        self._failed = MlflowException
        try:
            self._client = mlflow.MlflowClient(tracking_uri=uri)
        except MlflowException as error:
            raise MainstemError(
                f"MLflow refuses {uri or 'its place'}: {first_line(error)}"
            ) from None
        self._id: str | None = None
        self._step = 0

    def begin(self, run: str, about: Mapping[str, Any]) -> None:
        """Begins a run, with the experiment as its parameters."""
        try:
            found = self._client.get_experiment_by_name(self._experiment)
            place = (
                self._client.create_experiment(self._experiment)
                if found is None
                else found.experiment_id
            )
            self._id = self._client.create_run(place, run_name=run).info.run_id
            parameters = [
                self._parameter(name, value[:LONGEST]) for name, value in flat(about).items()
            ]
            self._client.log_batch(self._id, params=parameters)
        except self._failed as error:
            raise MainstemError(f"MLflow refuses the run: {first_line(error)}") from None

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Adds a step."""
        assert self._id is not None
        now = int(1000 * time.time())
        self._step = step
        metrics = [self._metric(name, value, now, step) for name, value in values.items()]
        self._client.log_batch(self._id, metrics=metrics)

    def end(self, values: Mapping[str, float]) -> None:
        """Adds the last values, and ends the run."""
        if self._id is None:
            return
        if values:
            self.log(self._step, {f"final/{name}": value for name, value in values.items()})
        self._client.set_terminated(self._id, "FINISHED" if values else "FAILED")
        self._id = None


def mlflow(uri: str | None = None, experiment: str = "mainstem") -> Tracker:
    """Runs of an experiment in MLflow; `uri`: sqlite:///FILE, or a server (default: MLFLOW_TRACKING_URI)."""
    return Runs(uri, experiment)
