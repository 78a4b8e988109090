"""Metrics of a hub for Prometheus, and its health over HTTP: /metrics, /healthz and /readyz.

The server runs in a thread of its own and reads the status that the hub makes once a second. A status that is too
old shows that the hub's event loop stands still.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mainstem.check import host_and_port
from mainstem.engines.federate.hub.presence import HERE
from mainstem.errors import MainstemError

OLD = 5.0  # seconds after which a status is too old
READY = ("running", "paused", "held")
ROUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # seconds
Respond = Callable[[str, list[tuple[str, str]]], Any]


class Metrics(Collector):
    """The metrics of one run. The hub calls `update` with each status and `merged` after each merge."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._status: dict[str, Any] | None = None
        self._updated = 0.0
        rounds = "Seconds from the first upload of a round to its merge."
        self._rounds = Histogram(
            "mainstem_round_seconds", rounds, buckets=ROUNDS, registry=self.registry
        )
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    def update(self, status: dict[str, Any]) -> None:
        """Takes the newest status."""
        self._status, self._updated = status, time.monotonic()

    def merged(self, waited: float) -> None:
        """Counts a merge that came so many seconds after the first upload."""
        self._rounds.observe(waited)

    # --- health ------------------------------------------------------------------------------------

    def unhealthy(self) -> str | None:
        """Why the hub's process should be started again; None if it is healthy."""
        age = time.monotonic() - self._updated
        if self._status is not None and age > OLD:
            return f"the hub has not moved for {age:.0f} seconds"
        return None

    def unready(self) -> str | None:
        """Why the hub does not serve its run at present; None if it does."""
        if self._status is None:
            return "the hub starts"
        state = self._status["state"]
        return self.unhealthy() or (None if state in READY else f"the run is {state}")

    # --- metrics -----------------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        """The metrics that follow from the status."""
        status = self._status
        if status is None:
            return
        run, clients = [status["run"]], status["clients"]
        versions = [str(status["versions"][name]) for name in ("mainstem", "protocol")]
        about = GaugeMetricFamily(
            "mainstem_info", "Versions.", labels=["run", "mainstem", "protocol"]
        )
        about.add_metric([*run, *versions], 1)
        yield about
        yield _gauge("connected", "Whether the NATS server is reached.", run, _connected(status))
        yield _gauge("hub_time_seconds", "When the status was made.", run, status["time"])
        yield _gauge("revision", "Of the run document.", run, status["revision"])
        yield _gauge(
            "waiting_clients", "With an upload to merge.", run, status["waiting"]["clients"]
        )
        yield _counter("merges", "Merges.", run, status["version"])
        yield _counter("broadcast_bytes", "Models sent.", run, status["bytes_down"])
        alarms = GaugeMetricFamily(
            "mainstem_alarm", "Alarms that are shown.", labels=["run", "alarm", "client"]
        )
        for alarm in status["alarms"]:
            alarms.add_metric([*run, alarm["alarm"], alarm["client"]], 1)
        yield alarms
        yield from _of_clients(run, clients)


def _of_clients(run: list[str], clients: dict[str, Any]) -> Iterator[Metric]:
    counted = {
        "uploads": "Uploads that were merged.",
        "samples": "Samples that were learnt.",
        "bytes_up": "Bytes of its messages.",
        "clipped": "Messages that the guard has shortened.",
        "held": "Messages that the guard has left out.",
    }
    shown = {
        "staleness": "Merges that the model of its last upload was behind.",
        "recent_loss": "Mean loss over its last 32 uploads.",
        "mean_loss": "Mean loss since the run began.",
    }
    for kind, texts in ((CounterMetricFamily, counted), (GaugeMetricFamily, shown)):
        for name, text in texts.items():
            family = kind(f"mainstem_client_{name}", text, labels=["run", "client"])
            for client, each in clients.items():
                family.add_metric([*run, client], each[name])
            yield family
    gains = GaugeMetricFamily(
        "mainstem_client_gain",
        "Its mean loss below that of the model that it learns alone.",
        labels=["run", "client"],
    )
    for client, each in clients.items():
        if each["alone"] is not None:
            gains.add_metric([*run, client], each["alone"]["gain"])
    yield gains
    present = GaugeMetricFamily(
        "mainstem_client_present", "Whether it is there.", labels=["run", "client"]
    )
    refused = CounterMetricFamily(
        "mainstem_client_refusals", "Refused uploads.", labels=["run", "client", "reason"]
    )
    for client, each in clients.items():
        present.add_metric([*run, client], each["state"] in HERE)
        for reason, count in each["refused"].items():
            refused.add_metric([*run, client, reason], count)
    yield present
    yield refused


def _connected(status: dict[str, Any]) -> bool:
    return bool(status["state"] != "disconnected")


def _gauge(name: str, text: str, run: list[str], value: float) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"mainstem_{name}", text, labels=["run"])
    family.add_metric(run, value)
    return family


def _counter(name: str, text: str, run: list[str], value: float) -> CounterMetricFamily:
    family = CounterMetricFamily(f"mainstem_{name}", text, labels=["run"])
    family.add_metric(run, value)
    return family


# --- HTTP ------------------------------------------------------------------------------------------


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *words: Any) -> None:
        """Logs nothing: a scrape every few seconds is no event."""


class MetricsServer:
    """Answers at HOST:PORT until it is closed."""

    def __init__(self, address: str, metrics: Metrics):
        host, port = host_and_port("--metrics", address)
        try:
            self._server: WSGIServer = make_server(host, port, _app(metrics), handler_class=_Quiet)
        except OSError as error:
            raise MainstemError(
                f"{address}: the metrics cannot be served: {error.strerror}"
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="mainstem metrics", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port at which it answers."""
        return int(self._server.server_port)

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _app(metrics: Metrics) -> Callable[[dict[str, Any], Respond], Iterable[bytes]]:
    exported = make_wsgi_app(metrics.registry)
    asked = {"/healthz": metrics.unhealthy, "/readyz": metrics.unready}

    def app(environment: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        path = environment["PATH_INFO"]
        if path == "/metrics":
            return list(exported(environment, respond))
        if path not in asked:
            return _answered(respond, "404 Not Found", "/metrics, /healthz or /readyz")
        why = asked[path]()
        return _answered(
            respond, "200 OK" if why is None else "503 Service Unavailable", why or "ok"
        )

    return app


def _answered(respond: Respond, code: str, text: str) -> list[bytes]:
    respond(code, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{text}\n".encode()]
