"""Tracking in MLflow: a database on this machine, and a server. MLflow itself reads what was written."""

import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

import mainstem as ms
from mainstem.errors import MainstemError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.mlflow,
    pytest.mark.filterwarnings("ignore"),  # MLflow has many
]
STEPS = 300


def simulate(track):
    problem, stream = ms.problems.softmax(features=64, classes=10), ms.streams.digits(clients=10)
    return ms.simulate(ms.fedogd(0.5), problem, stream, steps=STEPS, track=track)


@pytest.fixture(params=["database", "server"])
def place(request, tmp_path):
    """The address of a database, or of a server."""
    database = f"sqlite:///{tmp_path / 'mlflow.db'}"
    if request.param == "database":
        yield database
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", database]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
        try:
            url, end = f"http://127.0.0.1:{port}", time.monotonic() + 120
            while not _answers(url):
                assert process.poll() is None, (tmp_path / "server.log").read_text()
                assert time.monotonic() < end
                time.sleep(0.5)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _answers(url):
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5):
            return True
    except OSError:
        return False


def test_mlflow_reads_the_run(place):
    import mlflow

    run = simulate(ms.tracking.mlflow(place, experiment="digits"))
    client = mlflow.MlflowClient(tracking_uri=place)
    (found,) = client.search_runs([client.get_experiment_by_name("digits").experiment_id])
    assert found.info.run_name == "fedogd"
    assert found.info.status == "FINISHED"
    assert found.data.params["algorithm.step"] == "0.5"
    assert found.data.metrics["final/accuracy"] == pytest.approx(float(run.accuracy[-1]))
    losses = client.get_metric_history(found.info.run_id, "loss")
    assert [point.step for point in losses] == [*range(1, STEPS + 1)]
    np.testing.assert_allclose([point.value for point in losses], run.loss, rtol=1e-6)


def test_a_server_that_is_not_there_is_an_error_at_once(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(MainstemError, match="MLflow refuses the run"):
        simulate("mlflow:http://127.0.0.1:1")
