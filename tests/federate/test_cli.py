"""The command line: a hub, two clients without code, their status, and commands."""

import csv
import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from mainstem.engines.federate.client.sample_sources import feed
from mainstem.errors import BadData
from tests.federate.processes import ROOT, environment

RULES = {"run": "cli", "clients": ["a", "b"], "gather": 1, "features": ["x1", "x2"]}
CONTENT = {
    "problem": {"name": "linear", "features": 2},
    "algorithm": {"name": "fedogd", "step": 0.1},
    "federate": RULES,
}


def mainstem(*words, code=0):
    """Runs a command, checks its exit code, and returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "mainstem.cli", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def files(tmp_path):
    """A file for each client."""
    draw = np.random.default_rng(0)
    for name in "ab":
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["x1", "x2", "y"])
            rows.writerows([[x, y, x - 2 * y] for x, y in draw.normal(size=(200, 2)).tolist()])
    return tmp_path


@pytest.mark.slow
def test_a_run_from_the_command_line(processes, files, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    made = processes(CONTENT)
    hub = made.hub()
    stored, compiled = tmp_path / "caches/mainstem/programs", []
    secret = ("--credentials", made.credentials)
    assert "wants a credential file" in mainstem(
        "status", made.url, code=1
    )  # as another user of the machine
    words = ("join", made.url, "--run", "cli", "--json", *secret)
    for name in "ab":
        own = ("--client", name, "--stream", files / f"{name}.csv", "--folder", files / name)
        output = json.loads(mainstem(*words, *own))
        assert output["samples"] == 200
        assert output["squared_error"] < 2.0
        compiled.append(len(list(stored.glob("*-cache"))))
        again = json.loads(mainstem(*words, *own))  # there is nothing new in the file
        assert again["samples"] == 200
    before, after = compiled
    assert after < 1.3 * before, "the second client compiled what the first had stored"
    (found,) = json.loads(mainstem("status", made.url, "--json", *secret))
    assert {name: each["merged"] for name, each in found["clients"].items()} == {"a": 200, "b": 200}
    assert "cli: running, free" in mainstem("status", made.url, *secret)
    mainstem("order", "pause", made.url, "cli", *secret)
    (found,) = json.loads(mainstem("order", "finish", made.url, "cli", "--json", *secret))
    assert hub.wait(30) == 0
    model = made.model()
    assert np.allclose(model, [1, -2, 0], atol=0.3)


@pytest.mark.slow
def test_ctrl_c_saves_the_model(processes):
    made = processes(CONTENT)
    hub = made.hub()
    hub.send_signal(signal.SIGINT)
    assert hub.wait(30) == 130
    assert made.model().tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            (
                *("join", "nats://127.0.0.1:1", "--run", "r", "--client", "a"),
                *("--stream", "x.csv", "--wait", "0"),
            ),
            "no connection",
        ),
        (("status", "nats://127.0.0.1:1"), "no connection"),
        (("hub", "nothing.toml"), "cannot be read"),
    ],
)
def test_refusals_are_one_line(words, expected, tmp_path):
    message = mainstem(*words, code=1)
    assert expected in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5,2,3\n1,2,3\n", "the first line must name the columns"),
        ("x1,x2,y\n1,2\n", "not as many values"),
        ("x1,x2,y\n1,two,3\n", "'two' is no number"),
    ],
)
def test_a_file_that_is_no_table_is_refused(text, expected, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(BadData, match=expected):
        list(feed(str(tmp_path / "a.csv")))


def test_a_function_must_yield():
    with pytest.raises(BadData, match="must yield pairs"):
        list(feed("os:getpid"))


IGNORED = """
import os, signal, time
from mainstem.cli import join
for each in (signal.SIGTERM, signal.SIGALRM):
    signal.signal(each, join._leave)
class Callback:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)
del (found := {"it": Callback()})["it"]
time.sleep(30)
os._exit(7)
"""


def test_a_client_leaves_although_a_callback_ignores_its_first_signal():
    done = subprocess.run(
        [sys.executable, "-c", IGNORED], capture_output=True, text=True, timeout=25, check=False
    )
    assert "Exception ignored" in done.stderr
    assert done.returncode == 0
