"""A real Prometheus server scrapes a hub, and its rules fire when the hub is killed.

It needs `prometheus` and `promtool` of Debian's package `prometheus`.
"""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from tests.federate.clusters import STORED, Server, ports
from tests.federate.processes import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("prometheus") is None,
        reason="Prometheus is not installed (Debian: prometheus)",
    ),
]
SHIPPED = ROOT / "deploy" / "prometheus"
CONTENT = {
    "problem": {"name": "linear", "features": 2, "intercept": False},
    "algorithm": {"name": "fedogd", "step": 0.01},
    "federate": {"run": "scraped", "clients": ["a", "b"], "deadline": 0.2},
    "stream": {},
}


def read(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def until(found, seconds):
    end = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < end, "it was not seen in time"
        time.sleep(0.2)
    return value


@pytest.fixture
def prometheus(tmp_path):
    """(the address of a Prometheus server, the port that it scrapes)"""
    port, scraped = ports(2)
    text = (SHIPPED / "prometheus.yml").read_text()
    assert "127.0.0.1:9464" in text
    (tmp_path / "prometheus.yml").write_text(text.replace("9464", str(scraped)))
    shutil.copy(SHIPPED / "rules.yml", tmp_path)
    command = [
        "prometheus",
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (tmp_path / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    yield f"http://127.0.0.1:{port}", scraped
    process.terminate()
    process.wait(20)


def test_a_hub_is_scraped_and_its_death_raises_an_alert(processes, prometheus, tmp_path):
    address, port = prometheus
    server = Server(tmp_path / "server", "one", *ports(1), STORED)
    made = processes(CONTENT)
    hub = made.hub("--url", server.url, "--metrics", f"127.0.0.1:{port}")
    for name in ("a", "b"):
        words = ("tests.federate.changing_client", server.url, "scraped", name)
        made.start(*words, str(made.folder / f"site-{name}"), log=f"site-{name}.log")

    def value(query):
        found = json.loads(read(f"{address}/api/v1/query?query={urllib.parse.quote(query)}"))
        return [float(each["value"][1]) for each in found["data"]["result"]]

    def firing():
        found = json.loads(read(f"{address}/api/v1/alerts"))["data"]["alerts"]
        return {each["labels"]["alertname"] for each in found if each["state"] == "firing"}

    try:
        until(lambda: value('mainstem_merges_total{run="scraped"} > 5'), 60)
        assert until(lambda: value("sum(mainstem_client_present)"), 20) == [2]
        assert not firing()
        metrics = read(f"http://127.0.0.1:{port}/metrics")
        checked = subprocess.run(
            ["promtool", "check", "metrics"],
            input=metrics,
            text=True,
            capture_output=True,
            check=False,
        )
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
        rules = ["promtool", "check", "rules", str(SHIPPED / "rules.yml")]
        assert subprocess.run(rules, capture_output=True, check=False).returncode == 0
        hub.kill()
        until(lambda: "MainstemHubNotAnswering" in firing(), 10)
        made.hub("--url", server.url, "--metrics", f"127.0.0.1:{port}")
        until(lambda: not firing(), 30)
        server.kill()
        until(lambda: "MainstemAlarm" in firing(), 10)
    finally:
        server.kill()
