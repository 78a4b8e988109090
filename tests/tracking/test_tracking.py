"""Tracking: the real libraries read back what was written, and it is what the run has."""

import csv
import json
import logging
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mainstem as ms
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.simulate.recorder import Recorder
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
    assert name.startswith("fedogd-")
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
    assert len({row["run"] for row in rows}) == 2  # of 500 steps, and of 100


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
    (place,) = tmp_path.iterdir()
    found = EventAccumulator(str(place), size_guidance={"scalars": 0})
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


# --- of a run that is resumed --------------------------------------------------------------------


def interrupted(world, folder, track, chunks=3, **settings):
    """A run that is interrupted before it records the chunk after these."""
    with pytest.MonkeyPatch.context() as patch:
        real, calls = Recorder.write, []

        def write(self, rows, step):
            if len(calls) == chunks:
                raise KeyboardInterrupt
            calls.append(step)
            real(self, rows, step)

        patch.setattr(Recorder, "write", write)
        with pytest.raises(KeyboardInterrupt):
            simulate(world, track, folder=folder, **settings)


ODD = {"steps": 2503, "chunk": 77, "checkpoint": 0.0}  # 3 chunks end within a block of 2 steps


def test_a_resumed_run_has_the_points_of_one_that_was_not_interrupted(world, tmp_path):
    whole, before, after = Kept(), Kept(), Kept()
    simulate(world, whole, 2503, chunk=77)
    interrupted(world, tmp_path / "run", before, **ODD)
    assert len(before.steps) == 3 * 77 // BLOCK
    simulate(world, after, folder=tmp_path / "run", **ODD)
    assert not before.steps.keys() & after.steps.keys()
    found = before.steps | after.steps
    assert [*found] == [*whole.steps]
    assert all(whole.steps[step] == pytest.approx(found[step]) for step in found)


def test_a_run_that_is_tracked_from_its_resumption_on_begins_with_a_whole_block(world, tmp_path):
    whole, after = Kept(), Kept()
    simulate(world, whole, 2503, chunk=77)
    interrupted(world, tmp_path / "run", None, **ODD)
    simulate(world, after, folder=tmp_path / "run", **ODD)
    assert min(after.steps) == 3 * 77 + 1 + BLOCK
    assert all(whole.steps[step] == pytest.approx(after.steps[step]) for step in after.steps)


def twice(world, tmp_path, track):
    """A run that is resumed from a checkpoint that is older than what was tracked: each step is computed twice."""
    saved = Recorder.save
    with pytest.MonkeyPatch.context() as patch:

        def save(self, state, last):
            if self.step <= 100:
                saved(self, state, last)

        patch.setattr(Recorder, "save", save)
        interrupted(world, tmp_path / "run", track, chunks=4, steps=500, chunk=50, checkpoint=0.0)
    return simulate(world, track, 500, folder=tmp_path / "run", chunk=50, checkpoint=0.0)


def test_text_files_have_each_step_of_a_resumed_run_once(world, tmp_path):
    rows, lines = tmp_path / "run.csv", tmp_path / "run.jsonl"
    run = twice(world, tmp_path, [f"csv:{rows}", f"jsonl:{lines}"])
    found = csv.DictReader(rows.read_text().splitlines())
    table = [row for row in found if row["name"] == "loss"]
    assert [int(row["step"]) for row in table] == [*range(1, 501)]
    np.testing.assert_allclose([float(row["value"]) for row in table], run.loss, rtol=1e-6)
    kept = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [line["step"] for line in kept if "step" in line] == [*range(1, 501)]


def test_tensorboard_shows_each_step_of_a_resumed_run_once(world, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = twice(world, tmp_path, f"tensorboard:{tmp_path / 'logs'}")
    (place,) = (tmp_path / "logs").iterdir()
    found = EventAccumulator(str(place), size_guidance={"scalars": 0})
    found.Reload()
    assert [point.step for point in found.Scalars("loss")] == [*range(1, 501)]
    values = [point.value for point in found.Scalars("loss")]
    np.testing.assert_allclose(values, run.loss, rtol=1e-6)


def test_runs_with_other_parameters_have_other_names(world, tmp_path):
    problem, stream = world
    kept = Kept()
    for step in (0.1, 0.2, 0.1):
        ms.simulate(ms.fedogd(step), problem, stream, steps=10, track=kept)
    names = [name for name, _ in kept.runs]
    assert names[0] == names[2] != names[1]
    assert all(re.fullmatch(r"fedogd-[0-9a-f]{8}", name) for name in names)
    simulate(world, kept, 10, folder=tmp_path / "first")
    assert kept.runs[-1][0] == "first"


def test_a_tracker_that_cannot_begin_leaves_the_folder_free(world, tmp_path):
    class Refuses(Kept):
        def begin(self, run, about):
            raise MainstemError("there is no server")

    other = Kept()
    with pytest.raises(MainstemError, match="there is no server") as failure:
        simulate(world, [other, Refuses()], 10, folder=tmp_path / "run")
    assert other.last == [{}]
    run = simulate(world, other, 10, folder=tmp_path / "run")  # while the error is still known
    assert run.summary.steps == 10
    assert failure.value


# --- text files that were left in the middle of a line -------------------------------------------


def test_a_file_that_was_left_in_the_middle_of_a_line_goes_on_in_a_new_one(world, tmp_path):
    rows, lines = tmp_path / "run.csv", tmp_path / "run.jsonl"
    rows.write_text("run,step,time,name,value\nold,1,0.0,loss,1.0\nold,2,0.")
    lines.write_text('{"run": "old", "step": 1, "ti')
    simulate(world, [f"csv:{rows}", f"jsonl:{lines}"], 3)
    found = list(csv.reader(rows.read_text().splitlines()))
    assert found[2] == ["old", "2", "0."]
    assert all(len(row) == 5 for row in found[3:])
    torn, *whole = lines.read_text().splitlines()
    assert torn == '{"run": "old", "step": 1, "ti'
    assert [json.loads(line).get("step") for line in whole] == [None, 1, 2, 3]


@pytest.mark.parametrize("torn", ["a,2", "a,200,1.0,loss,0."])
def test_a_part_of_a_line_is_no_step(tmp_path, torn):
    """Steps 1 to 3 and a part of step 200 are there: 4 and 200 are written, the others are not again."""
    file = tmp_path / "run.csv"
    whole = "".join(f"a,{step},0.0,loss,1.0\r\n" for step in (1, 2, 3))
    file.write_bytes(f"run,step,time,name,value\r\n{whole}{torn}".encode())
    tracker = ms.tracking.csv(file)
    tracker.begin("a", {})
    tracker.resumed(2)
    for step in (3, 4, 200):
        tracker.log(step, {"loss": 0.5})
    tracker.end({})
    found = [row for row in csv.reader(file.read_text().splitlines()) if len(row) == 5]
    steps = [row[1] for row in found if row[4] in ("1.0", "0.5")]
    assert steps == ["1", "2", "3", "4", "200"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_second_writer_of_a_file_is_refused(world, tmp_path, kind):
    first, asked = ms.tracking.tracker(f"{kind}:{tmp_path / 'run'}"), f"{kind}:{tmp_path / 'run'}"
    first.begin("a", {})
    with pytest.raises(MainstemError, match="another run is tracked in this file"):
        simulate(world, asked, 3)
    first.log(1, {"loss": 0.5})
    first.end({})
    simulate(world, asked, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


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


def test_a_hub_that_is_started_again_does_not_repeat_its_last_merge(tmp_path):
    content = {
        "problem": {"name": "linear", "features": 2},
        "algorithm": {"name": "fedogd", "step": 0.1},
        "federate": {"run": "again", "clients": ["a"], "pace": "lockstep", "steps": 30},
    }

    def served(steps):
        kept, secret = Kept(), tmp_path / "hub" / "private.creds"
        own = {"client": "a", "credentials": secret, "folder": tmp_path / "a"}
        with (
            ms.serve(content, folder=tmp_path / "hub", track=kept) as hub,
            ms.join(hub.url, run="again", **own) as learner,
        ):
            for _ in range(steps):
                learner.learn_one([1.0, 2.0], 3.0)
            end = time.monotonic() + 60
            while hub.status()["version"] < sum(done):
                assert time.monotonic() < end
                time.sleep(0.05)
        return [*kept.steps]

    done = [3]
    assert served(3)[-1] == 3
    assert served(0) == []
    done.append(2)
    assert served(2)[-1] == 5


DOCUMENT = {
    "problem": {"name": "linear", "features": 2},
    "algorithm": {"name": "fedogd", "step": 0.1},
    "federate": {"run": "slow", "clients": ["a"]},
}
CLIENT = {"recent_loss": 1.0, "uploads": 1, "bytes_up": 8, "refused": {}, "state": "present"}


def merged(version):
    """The status after a merge."""
    client = CLIENT | {"staleness": 0}
    return {"version": version, "bytes_down": 0, "clients": {"a": client}}


def test_a_tracker_of_a_hub_that_has_failed_is_tried_again(monkeypatch, caplog):
    from mainstem.engines.federate.hub import tracked

    class Full(Kept):
        """Fails for a while."""

        tries = 0

        def log(self, step, values):
            self.tries += step >= 3
            if step >= 3 and self.tries < 3:
                raise OSError("no space left")
            assert step not in self.steps
            super().log(step, values)

    monkeypatch.setattr(tracked, "PAUSE", 0.1)
    full, kept = Full(), Kept()
    found = tracked.TrackedStatus([full, kept], parse(DOCUMENT))
    for version in range(1, 9):
        found.take(merged(version))
        time.sleep(0.1)
    found.close(merged(9))
    assert [*full.steps] == [*kept.steps] == [*range(1, 10)]
    assert full.last == kept.last != [{}]
    assert full.tries > 3
    texts = [record.getMessage() for record in caplog.records]
    assert [text for text in texts if "tried again" in text] == texts
    assert len(texts) == 2


def test_points_that_wait_for_a_tracker_of_a_hub_have_bounded_room(monkeypatch, caplog):
    from mainstem.tracking import opening

    class Gone(Kept):
        def log(self, step, values):
            raise OSError("the server is gone")

    gone, pause = Gone(), 1e6
    monkeypatch.setattr(opening, "WAITING", 5)
    found = opening.Tracking([gone], pause)
    found.begin("a", {})
    for step in range(20):
        found.log(step, {"loss": 0.5})
    (worker,) = found._at_work
    assert [step for step, _ in worker.points] == [*range(15, 20)]
    found.end({"loss": 0.5})
    assert gone.last == [{"loss": 0.5}]
    assert "without its last 5 points" in caplog.records[-1].getMessage()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_step_that_was_written_in_part_is_written_again_as_a_whole(tmp_path, kind):
    file = tmp_path / "run"
    tracker = ms.tracking.tracker(f"{kind}:{file}")
    tracker.begin("a", {})
    tracker.log(1, {"loss": 0.5, "mse": 0.25})
    before = file.read_bytes()

    class Full(type(tracker._file)):
        """A disk with room for a part."""

        def write(self, data):
            if len(data) < 20:
                raise OSError(28, "no space left")
            return super().write(data[:20])

    real, tracker._file = tracker._file, Full(file, "a+")
    with pytest.raises(OSError, match="no space left"):
        tracker.log(2, {"loss": 0.5, "mse": 0.25})
    assert file.read_bytes() == before
    tracker._file.close()
    tracker._file = real
    tracker.log(2, {"loss": 0.5, "mse": 0.25})
    tracker.end({})
    assert len(file.read_text().splitlines()) == {"csv": 5, "jsonl": 3}[kind]


def test_a_slow_tracker_delays_nothing(monkeypatch, caplog):
    from mainstem.engines.federate.hub import tracked

    going = threading.Event()

    class Slow(Kept):
        def log(self, step, values):
            going.wait(30)
            super().log(step, values)

    kept = Slow()
    found = tracked.TrackedStatus(kept, parse(DOCUMENT))
    begin = time.monotonic()
    for version in range(1, 200):
        found.take(merged(version))
    assert time.monotonic() - begin < 5
    going.set()
    found.close(merged(199))
    assert tracked.WAITING <= len(kept.steps) < 199
    assert any("left out" in record.getMessage() for record in caplog.records)


def test_a_run_that_nobody_tracks_reads_no_curve(monkeypatch):
    """A trace stays where it was computed until somebody reads it."""
    read, column = [], Recorder._column
    monkeypatch.setattr(
        Recorder, "_column", lambda self, name: read.append(name) or column(self, name)
    )
    problem, stream = ms.problems.softmax(64, 10), ms.streams.digits(clients=5)
    run = ms.simulate(ms.fedogd(0.1), problem, stream, steps=5)
    assert read == []
    assert run.loss.shape == (5,)
    assert read == ["loss"]
