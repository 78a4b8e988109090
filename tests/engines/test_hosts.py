"""Simulations on several hosts, as processes on loopback: the same numbers, and one line if one is killed."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

import mainstem as ms
from mainstem.engines.simulate import hosts, shares
from tests.contract.cases import CASES
from tests.federate.secured import free_port

EXPERIMENT = """
[problem]
name = "softmax"
features = 64
classes = 10
[stream]
name = "digits"
clients = 21
[[algorithm]]
name = "fedomd"
step = 0.3
sync = { name = "every", period = 3 }
[simulate]
steps = 900
chunk = 30
checkpoint = 0.0
dtype = "float64"
"""


def _python(*words, **more):
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def _ended(processes, limit=600):
    """(exit code, stdout, stderr) of each."""
    try:
        output = [each.communicate(timeout=limit) for each in processes]
    finally:
        for each in processes:
            each.kill()
    return [(each.returncode, *both) for each, both in zip(processes, output, strict=True)]


def _simulated(folder, count, up, names):
    """The processes that simulate the cases on so many hosts, each of which stores what it sees."""
    folder.mkdir()
    port = free_port()
    words = ["-m", "tests.engines.on_hosts", count]
    return [_python(*words, host, port, folder, up, *names) for host in range(count)]


def _check_equal(tmp_path, names, up):
    folders = {count: tmp_path / str(count) for count in (1, 2)}
    alone, both = (_simulated(folder, count, up, names) for count, folder in folders.items())
    for code, _, error in _ended(alone + both):
        assert code == 0, error[-3000:]
    alone, both = (
        {file.name: dict(np.load(file)) for file in sorted(folder.iterdir())}
        for folder in folders.values()
    )
    assert len(both) == 2 * len(alone) == 4 * len(names)
    for name, columns in both.items():
        wanted = alone[f"{name.rsplit('-', 1)[0]}-0.npz"]
        assert columns.keys() == wanted.keys()
        for column, values in columns.items():
            np.testing.assert_allclose(
                values, wanted[column], rtol=0, atol=1e-12, err_msg=f"{name}: {column}"
            )


def test_two_hosts_equal_one(tmp_path):
    _check_equal(tmp_path, ["fedogd error feedback"], up=0)


@pytest.mark.slow
@pytest.mark.parametrize("up", [0, 2], ids=["no delay", "delays"])
@pytest.mark.parametrize("part", range(3))
def test_two_hosts_equal_one_for_every_algorithm(tmp_path, up, part):
    _check_equal(tmp_path, list(CASES)[part::3], up)


def _start(file, count, **more):
    """The command on so many hosts."""
    port = free_port()
    words = ["-m", "mainstem.cli", "run", file, "--json", "--hosts", count]
    where = ["--coordinator", f"127.0.0.1:{port}", "--folder", file.parent / "runs"]
    return [_python(*words, "--host", host, *where, **more) for host in range(count)]


def _last_step(file):
    """The step of the newest checkpoint."""
    for found in file.parent.glob("runs/*/checkpoint.npz"):
        return int(np.load(found)["step"])
    return 0


@pytest.mark.slow
@pytest.mark.parametrize("victim", [1, 0])
def test_a_killed_host_ends_all_and_one_host_resumes(tmp_path, victim):
    file = tmp_path / "one.toml"
    file.write_text(EXPERIMENT)
    started = _start(file, 2)
    deadline = time.monotonic() + 120
    while _last_step(file) < 90:
        assert all(each.poll() is None for each in started), _ended(started)
        assert time.monotonic() < deadline
        time.sleep(0.01)
    started[victim].send_signal(signal.SIGKILL)
    ended = _ended(started, limit=60)
    code, out, error = ended[1 - victim]
    assert (code, out) == (1, "")
    assert "another host is gone" in error
    assert error.count("\n") == 1
    reached = _last_step(file)
    assert 90 <= reached < 900

    code, out, error = _ended(
        [_python("-m", "mainstem.cli", "run", file, "--json", "--folder", tmp_path / "runs")]
    )[0]
    assert code == 0, error
    place = json.loads(out)["runs"][0]["folder"]
    resumed = ms.load(place)
    assert {each.name for each in (tmp_path / "runs").glob("*/checkpoint*")} == set()
    whole = ms.simulate(
        ms.fedomd(0.3, sync=ms.parts.every(3)),
        ms.problems.softmax(64, 10),
        ms.streams.digits(clients=21),
        steps=900,
        dtype="float64",
    )
    for name in whole.columns:
        np.testing.assert_allclose(resumed.trace[name], whole.trace[name], rtol=0, atol=1e-10)


def test_wrong_use_is_refused_in_one_line(tmp_path):
    file = tmp_path / "one.toml"
    file.write_text(EXPERIMENT)
    for words, wanted in [
        (["--hosts", "2"], "--hosts N needs --host"),
        (["--host", "1"], "need --hosts N"),
        (["--hosts", "two"], "must be a number or auto, got 'two'"),
        (
            ["--hosts", "2", "--host", "2", "--coordinator", "a:1"],
            "must be below the 2 hosts, got 2",
        ),
        (["--hosts", "2", "--host", "0", "--coordinator", "a"], "must be ADDRESS:PORT, got 'a'"),
    ]:
        code, _, error = _ended([_python("-m", "mainstem.cli", "run", file, *words)])[0]
        assert code == 2
        assert wanted in " ".join(error.replace("│", " ").split())


@pytest.mark.slow
def test_hosts_with_other_arguments_are_refused(tmp_path):
    file, other = tmp_path / "one.toml", tmp_path / "two.toml"
    file.write_text(EXPERIMENT)
    other.write_text(EXPERIMENT.replace("step = 0.3", "step = 0.2"))
    port = free_port()
    words = [
        "--json",
        "--folder",
        tmp_path / "runs",
        "--hosts",
        2,
        "--coordinator",
        f"127.0.0.1:{port}",
    ]
    started = [
        _python("-m", "mainstem.cli", "run", each, *words, "--host", n)
        for n, each in enumerate([file, other])
    ]
    first, second = _ended(started, limit=120)
    assert (first[0], second[0]) == (1, 1)
    assert "host 1 has another simulation than the first host" in second[2]
    assert "another host is gone" in first[2]


def test_a_state_is_put_together_from_shares():
    whole = np.arange(24).reshape(4, 6)
    parts = {"0": np.array(7), "1@0,0": whole[:, :3], "1@0,3": whole[:, 3:]}
    found = shares.joined(parts)
    assert found[0] == 7
    np.testing.assert_array_equal(found[1], whole)
    np.testing.assert_array_equal(shares.fitted(whole, (4, 5)), whole[:, :5])
    assert shares.fits(whole, np.zeros((4, 8), int))
    assert not shares.fits(whole, np.zeros((5, 8), int))


def test_one_host_agrees_with_itself():
    assert hosts.agreed([1, "a"]) == [1, "a"]
    done = Counter()
    hosts.by_first(lambda: done.update("x"))
    assert done["x"] == 1
