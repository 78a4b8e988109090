"""The command line, started in an empty folder."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mainstem as ms
from tests.cli.command import mainstem

FILE = """
[problem]
name = "softmax"
features = 64
classes = 10

[stream]
name = "digits"
clients = 20

[[algorithm]]
name = "fedogd"
step = 0.5

[[algorithm]]
name = "fedomd"
step = { name = "inverse_sqrt", scale = 0.5 }
sync = { name = "every", period = 5 }

[simulate]
steps = 30
"""


def own_process(folder, *words, **more):
    """The command as a user starts it."""
    command = [sys.executable, "-m", "mainstem.cli", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **more)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "digits.toml"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("budget", "expected"),
    [("0.01", (3, 777, 0.0862)), ("0.1", (17, 1134, 0.5151))],
)
def test_plan_prints_the_published_parameters(tmp_path, budget, expected):
    done = mainstem(tmp_path, "plan", "--budget", budget, "--parameters", "34826", "--json")
    found = json.loads(done.stdout)
    assert (found["levels"], found["blocks"], round(found["rate"], 4)) == expected
    formula = 32 * found["blocks"] + 34826 * (1 + {3: 2, 17: 4.169925}[found["levels"]])
    assert found["bits_per_client_and_step"] == pytest.approx(found["rate"] * formula, rel=1e-5)


def test_advise_ranks_and_needs_no_algorithm(file):
    file.write_text(FILE.partition("[[algorithm]]")[0])
    done = mainstem(file.parent, "advise", file.name, "--budget", "0.1", "--steps", "50", "--json")
    output = json.loads(done.stdout)
    assert output["ways"][0]["algorithm"] == "ofediq"
    assert all(way["uplink_share"] <= 0.1 + 1e-9 for way in output["ways"])
    assert output["measured"]["clients"] == 20
    planned = output["ways"][0]["parameters"]  # as in an experiment file
    assert ms.ofediq(**planned).step.always == planned["step"]
    printed = mainstem(file.parent, "advise", file.name, "--budget", "0.1", "--steps", "50")
    assert printed.stdout.startswith("1. ofediq(step=")


def test_advise_names_what_is_missing(file):
    file.write_text(FILE.partition("[simulate]")[0])
    done = mainstem(file.parent, "advise", file.name, "--budget", "0.1")
    assert done.returncode == 1
    assert done.stderr == f"mainstem: {file.name}: [simulate] needs steps, or give --steps\n"


def test_bounds_prints_every_theorem(tmp_path):
    done = mainstem(tmp_path, "bounds", "--json")
    lines = {line["theorem"]: line for line in json.loads(done.stdout)}
    assert len(lines) == 19
    assert lines["fedomd_theorem_1"]["value"] == 1125 + 400  # D^2/eta + 5 eta L^2 tau T
    assert "guarantee" in mainstem(tmp_path, "bounds").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ofediq_theorem_1", "--set", "step=0.1"], "ofediq_theorem_1: step must be below 0.05"),
        (["--set", "colour=1"], "bounds: a constant must be one of"),
        (["--set", "clients=many"], "--set clients=many: wants name=number"),
        (["theorem_9"], "bounds: the theorem must be one of"),
    ],
)
def test_bounds_refuses(tmp_path, words, message):
    done = mainstem(tmp_path, "bounds", *words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"mainstem: {message}")


def test_version(tmp_path):
    assert mainstem(tmp_path, "--version").stdout == f"mainstem {ms.__version__}\n"


def test_plan_and_help_do_not_import_jax(tmp_path):
    code = (
        "import sys\nfrom mainstem.cli import app\n"
        "plan = ['plan', '--budget', '0.01', '--parameters', '100']\n"
        "for words in (plan, ['--help'], ['run', '--help'], ['bounds', '--help']):\n"
        "    try:\n        app(words)\n    except SystemExit:\n        pass\n"
        "assert 'jax' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command", [[], ["run"], ["plan"], ["advise"], ["bounds"], ["demo"], ["data"], ["data", "get"]]
)
def test_help_has_an_example(tmp_path, command):
    done = mainstem(tmp_path, *command, "--help")
    assert done.returncode == 0
    assert "Example: mainstem" in done.stdout or command in ([], ["data"])


def test_an_unknown_column_is_refused_after_the_first_run(tmp_path, file):
    done = mainstem(tmp_path, "run", "digits.toml", "--y", "acuracy")
    assert done.returncode == 1
    assert "acuracy" in done.stderr
    assert "accuracy" in done.stderr
    assert [path.parent.name.split("-")[0] for path in tmp_path.rglob("run.json")] == ["fedogd"]


def test_run_saves_compares_and_reuses(tmp_path, file):
    done = own_process(tmp_path, "run", "digits.toml", "--set", "simulate.steps=20", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert [row["algorithm"] for row in found["runs"]] == ["fedogd", "fedomd"]
    figure = tmp_path / found["figure"]
    assert figure.stat().st_size > 10_000
    assert figure.with_suffix(".csv").read_text().startswith("algorithm,accuracy,")
    assert r"\toprule" in figure.with_suffix(".tex").read_text()
    words = "--y", "loss", "--x", "uplink bits", "--set", "simulate.steps=20"
    again = mainstem(tmp_path, "run", "digits.toml", *words)
    assert again.returncode == 0
    assert "fedomd" in again.stdout
    assert "loss  uplink bits" in again.stdout
    folders = {row["folder"] for row in found["runs"]}
    assert {
        str(path.relative_to(tmp_path)) for path in tmp_path.glob("runs/digits/fed*")
    } == folders
    for change in ("simulate.seed=5", "algorithm.0.step=0.25"):  # a variant, beside the others
        words = ("--set", "simulate.steps=20", "--set", change, "--json")
        other = json.loads(mainstem(tmp_path, "run", "digits.toml", *words).stdout)
        assert other["runs"][0]["folder"] not in folders
        assert (other["runs"][1]["folder"] in folders) == change.startswith("algorithm")
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("model.npz")}
    added = file.read_text() + '[[algorithm]]\nname = "fedogd"\nstep = 0.75\n[simulate]\nsteps = 20'
    file.write_text(added.replace("[simulate]\nsteps = 30\n", ""))
    more = json.loads(mainstem(tmp_path, "run", "digits.toml", "--json").stdout)["runs"]
    assert [row["folder"] in folders for row in more] == [True, True, False]
    assert [row["algorithm"] for row in more] == ["fedogd step=0.5", "fedomd", "fedogd step=0.75"]
    assert all(path.stat().st_mtime_ns == time for path, time in written.items())
    (tmp_path / "file").write_text("")
    blocked = mainstem(tmp_path, "run", "digits.toml", "--folder", "file/inside")
    assert blocked.returncode == 1
    assert blocked.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("problem.name=softmx", "unknown name 'softmx', did you mean softmax?"),
        ("problem.clases=3", "unknown key 'clases', did you mean classes?"),
        ("simulate.step=3", "unknown key 'step', did you mean steps?"),
        ("steps=3", "steps is a key of the table [simulate]: simulate.steps"),
        ("simualte.steps=3", "unknown table 'simualte', did you mean simulate?"),
        ("algorithm.0.step=-1", "step must be above 0, got -1"),
        ("algorithm.9.step=1", "there is no such place"),
        ("nonsense", "wants key=value"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, file, change, message):
    done = mainstem(tmp_path, "run", "digits.toml", "--set", change)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.startswith("mainstem: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_missing_file_and_bad_toml_are_refused(tmp_path):
    assert "cannot be read" in mainstem(tmp_path, "run", "nowhere.toml").stderr
    (tmp_path / "bad.toml").write_text("[problem\n")
    done = mainstem(tmp_path, "run", "bad.toml")
    assert done.returncode == 1
    assert "is not TOML" in done.stderr


def test_wrong_usage_is_exit_code_2(tmp_path):
    assert mainstem(tmp_path, "plan", "--budget", "0.1").returncode == 2
    assert mainstem(tmp_path, "nonsense").returncode == 2


# As in a terminal: a shell that starts the tests in the background has them ignore the signal.
HEARS_CTRL_C = (
    "import os, signal, sys\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


def test_ctrl_c_can_be_resumed(tmp_path, file):
    command = [sys.executable, "-c", HEARS_CTRL_C, "-m", "mainstem.cli", "run", "digits.toml"]
    command += ["--set", "simulate.steps=400000", "--set", "simulate.chunk=500"]
    command += ["--set", "simulate.checkpoint=0"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    runs = tmp_path / "runs" / "digits"
    deadline = time.monotonic() + 120
    while len(list(runs.glob("fedogd-*/trace/*.parquet"))) < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "the same command resumes it" in stderr
    assert list(runs.glob("fedogd-*/checkpoint.npz"))


def test_an_error_that_an_interrupt_has_caused_is_the_interrupt(tmp_path):
    broken_off = (
        "from mainstem import cli, progress\n"
        "def app():\n"
        "    progress.interrupted.set()\n"
        "    raise ValueError('the file is not closed')\n"
        "cli.app = app\n"
        "cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", broken_off], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "mainstem: interrupted; the same command resumes it\n"


def test_data_list_shows_what_is_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("MAINSTEM_DATA", str(tmp_path))
    done = mainstem(tmp_path, "data", "list", "--json")
    rows = json.loads(done.stdout)
    assert {row["name"] for row in rows} >= {"mnist", "usps", "elec2", "pjm_hourly"}
    assert {row["status"] for row in rows} == {"missing"}
    done = mainstem(tmp_path, "data", "get", "minst")
    assert done.returncode == 1
    assert "mnist" in done.stderr


@pytest.mark.parametrize(
    ("steps", "accuracy"), [(60, 0.6), pytest.param(500, 0.9, marks=pytest.mark.slow)]
)
def test_demo_ends_with_a_table_and_a_figure(tmp_path, steps, accuracy):
    done = own_process(tmp_path, "demo", "--json", "--steps", str(steps))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {row["algorithm"]: row for row in found["runs"]}
    assert len(rows) == 5
    planned = next(row for name, row in rows.items() if name.startswith("OFedIQ"))
    assert planned["uplink_saving"] == pytest.approx(0.99, abs=0.001)
    assert planned["accuracy"] > accuracy
    assert Path(tmp_path / found["figure"]).exists()


def test_the_readme_leads_from_a_csv_to_a_report(tmp_path):
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (block,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "own.toml").write_text(block)
    draw = np.random.default_rng(0)
    heat, wind = draw.normal(size=(2, 200))
    rows = [
        f"{h},{w},{2 * h - w},{site}"
        for h, w, site in zip(heat, wind, ["n", "s"] * 100, strict=True)
    ]
    (tmp_path / "load.csv").write_text("\n".join(["heat,wind,load,site", *rows]))
    done = own_process(tmp_path, "run", "own.toml")
    assert done.returncode == 0, done.stderr
    assert "fedogd" in done.stdout
    assert "independent" in done.stdout
    assert (tmp_path / "runs" / "own" / "report.html").stat().st_size > 100_000
    seeds = mainstem(tmp_path, "run", "own.toml", "--set", "simulate.seeds=2")
    assert "all seeds gave the same: nothing here is random" in seeds.stderr
