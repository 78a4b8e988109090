"""Tracking: the real libraries read back what was written, and it is what the run has."""

import csv
import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mainstem as ms
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.errors import MainstemError
from mainstem.tracking import Tracker

STEPS, BLOCK = 2500, 2
LAST = ("accuracy", "uplink_bits", "downlink_bits")


class Kept(Tracker):
    """Keeps what it receives; fails at a step if asked."""

    def __init__(self, fails=None):
        self.runs, self.steps, self.last, self.fails = [], {}, [], fails

    def begin(self, run, about):
        self.runs.append((run, about))

    def log(self, step, values):
        if step == self.fails:
            raise OSError("no space left")
        self.steps[step] = values

    def end(self, values):
        self.last.append(values)


@pytest.fixture(scope="module")
def world():
    return ms.problems.softmax(features=64, classes=10), ms.streams.digits(clients=10)


def simulate(world, track, steps=STEPS, **settings):
    problem, stream = world
    return ms.simulate(ms.fedogd(0.5), problem, stream, steps=steps, track=track, **settings)


def blocks(curve):
    return np.atleast_2d(curve).mean(axis=0).reshape(-1, BLOCK).mean(axis=1)


def expected(run):
    """The last values of the run."""
    found = {name: float(np.atleast_2d(run.curve(name))[:, -1].mean()) for name in LAST}
    return found | {"loss": float(np.mean(run.loss))}


@pytest.mark.parametrize("chunk", [None, 7])
def test_values_are_means_over_blocks_whatever_the_chunks(world, chunk):
    kept = Kept()
    run = simulate(world, kept, seeds=2, chunk=chunk)
    assert [*kept.steps] == [*range(BLOCK, STEPS + 1, BLOCK)]
    losses = [values["loss"] for values in kept.steps.values()]
    np.testing.assert_allclose(losses, blocks(run.loss), rtol=1e-6)
    rights = [values["accuracy"] for values in kept.steps.values()]
    np.testing.assert_allclose(rights, blocks(run.column("correct")), rtol=1e-6)
    ((name, about),) = kept.runs
    assert name == "fedogd"
    assert about["algorithm"]["step"] == 0.5
    assert kept.last == [pytest.approx(expected(run))]


def test_the_run_is_the_same_with_and_without(world):
    tracked, plain = simulate(world, Kept(), 300), simulate(world, None, 300)
    np.testing.assert_array_equal(tracked.loss, plain.loss)


def test_clients_without_a_sample_do_not_count(world):
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(60, 2))
    keys = np.repeat([0, 1, 2], [30, 20, 10])  # the shorter ones are silent at the end
    deal = ms.streams.by_key(ends="silent")
    stream = ms.streams.arrays(rows, (rows[:, 0] > 0).astype(int), keys=keys, deal=deal)
    kept = Kept()
    run = ms.simulate(
        ms.fedogd(0.5), ms.problems.logistic(features=2), stream, steps=30, track=kept
    )
    rights = np.array([values["accuracy"] for values in kept.steps.values()])
    present = run.column("present")
    np.testing.assert_allclose(rights, run.column("correct") / present, rtol=1e-6)
    assert present.min() < 1


def test_a_tracker_that_fails_is_left_out_and_the_log_says_so(world, caplog):
    broken, kept = Kept(fails=100), Kept()
    with caplog.at_level(logging.ERROR, logger="mainstem"):
        simulate(world, [broken, kept])
    assert max(broken.steps) == 100 - BLOCK
    assert broken.last == [{}]
    assert max(kept.steps) == STEPS
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == "tracking by Kept has ended, the run goes on: no space left"


def test_a_run_that_does_not_finish_has_no_last_values(world):
    kept = Kept()

    class Interrupted(Kept):
        def log(self, step, values):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(world, [kept, Interrupted()])
    assert kept.last == [{}]


def test_csv(world, tmp_path):
    file = tmp_path / "new" / "losses.csv"
    run = simulate(world, f"csv:{file}", 500)
    simulate(world, f"csv:{file}", 100)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    losses = [float(row["value"]) for row in rows if row["name"] == "loss"]
    assert len(losses) == 600
    np.testing.assert_allclose(losses[:500], run.loss, rtol=1e-6)
    assert {row["run"] for row in rows} == {"fedogd"}


def test_json_lines(world, tmp_path):
    file = tmp_path / "run.jsonl"
    run = simulate(world, ms.tracking.json_lines(file), 500)
    first, *lines = map(json.loads, file.read_text().splitlines())
    assert first["experiment"]["algorithm"]["name"] == "fedogd"
    assert [line["step"] for line in lines] == [*range(1, 501)]
    np.testing.assert_allclose([line["values"]["loss"] for line in lines], run.loss, rtol=1e-6)


def test_tensorboard_reads_its_files(world, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = simulate(world, f"tensorboard:{tmp_path}", 500)
    found = EventAccumulator(str(tmp_path / "fedogd"), size_guidance={"scalars": 0})
    found.Reload()
    points = found.Scalars("loss")
    assert [point.step for point in points] == [*range(1, 501)]
    np.testing.assert_allclose([point.value for point in points], run.loss, rtol=1e-6)
    (last,) = found.Scalars("final/accuracy")
    assert last.value == pytest.approx(float(run.accuracy[-1]))
    (text,) = found.Tensors("experiment")
    assert b"algorithm.step | 0.5" in text.tensor_proto.string_val[0]


@pytest.mark.parametrize("asked", ["paper:x", "csv:", "csv", 3])
def test_what_is_no_tracker_is_refused(world, asked):
    with pytest.raises((MainstemError, TypeError)):
        simulate(world, asked, 10)


# --- of a hub ------------------------------------------------------------------------------------


def test_a_hub_is_tracked_by_its_merges(tmp_path):
    kept, file = Kept(), tmp_path / "hub.csv"
    content = {
        "problem": {"name": "linear", "features": 2},
        "algorithm": {"name": "fedogd", "step": 0.1},
        "federate": {"run": "tracked", "clients": ["a", "b"], "pace": "lockstep", "steps": 30},
    }
    with ms.serve(content, folder=tmp_path / "hub", track=[kept, f"csv:{file}"]) as hub:
        secret = tmp_path / "hub" / "private.creds"
        both = [ms.join(hub.url, run="tracked", client=name, credentials=secret) for name in "ab"]
        for _ in range(30):
            with ThreadPoolExecutor(2) as threads:
                list(threads.map(lambda each: each.learn_one([1.0, 2.0], 3.0), both))
        hub.wait()
        status = hub.status()
        for each in both:
            each.close()
    assert kept.runs[0][0] == "tracked"
    assert kept.runs[0][1]["algorithm"]["name"] == "fedogd"
    last = max(kept.steps)
    assert last == 30
    sent = sum(each["bytes_up"] for each in status["clients"].values())
    assert kept.steps[last]["bytes_up"] == sent > 0
    assert {"recent_loss", "recent_loss/a", "recent_loss/b"} <= set(kept.steps[last])
    (final,) = kept.last
    assert final == kept.steps[last]
    assert "tracked" in file.read_text()


def test_a_slow_tracker_delays_nothing(monkeypatch, caplog):
    from mainstem.engines.federate.hub import tracked

    going = threading.Event()

    class Slow(Kept):
        def log(self, step, values):
            going.wait(30)
            super().log(step, values)

    kept = Slow()
    document = parse(
        {
            "problem": {"name": "linear", "features": 2},
            "algorithm": {"name": "fedogd", "step": 0.1},
            "federate": {"run": "slow", "clients": ["a"]},
        }
    )
    found = tracked.TrackedStatus(kept, document)
    client = {"recent_loss": 1.0, "uploads": 1, "bytes_up": 8, "refused": {}, "state": "present"}
    client |= {"staleness": 0}
    begin = time.monotonic()
    for version in range(1, 200):
        found.take({"version": version, "bytes_down": 0, "clients": {"a": client}})
    assert time.monotonic() - begin < 5
    going.set()
    found.close({"version": 199, "bytes_down": 0, "clients": {"a": client}})
    assert tracked.WAITING <= len(kept.steps) < 199
    assert any("left out" in record.getMessage() for record in caplog.records)
