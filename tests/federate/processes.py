"""Hubs and clients as real processes."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import numpy as np
import tomli_w

import mainstem as ms
from mainstem import algorithms, experiment, problems
from mainstem.engines.federate.hub.model_file import MODEL, read_model
from mainstem.engines.federate.protocol.run_document import parse
from tests.federate.worlds import stream_of

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0  # seconds for a hub to start, and to reach a step, on a machine that does other things too


def environment() -> dict[str, str]:
    """The environment of a process: that of the tests, as conftest.py has set it, on one thread of a CPU."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}


def asked(url: str) -> tuple[int, str]:
    """The code and the text of an answer over HTTP; 0: there is none."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


class Federation:
    """A folder with an experiment, its hub and its clients."""

    def __init__(self, folder: Path, content: dict):
        self.folder = folder
        self.content = content
        self.rules = content["federate"]
        self.file = folder / "run.toml"
        folder.mkdir(parents=True, exist_ok=True)
        self.file.write_text(tomli_w.dumps(content))
        self.document = {key: content[key] for key in ("problem", "algorithm", "federate")}
        (folder / "hub.toml").write_text(tomli_w.dumps(self.document))
        self.processes: list[subprocess.Popen] = []
        self.credentials: str | None = None  # of the hub's private server

    def start(self, *module: str, log: str, killed_at: str | None = None) -> subprocess.Popen:
        """Starts a module; it is killed at a point such as "hub after store:17", at the 17th time."""
        killer = () if killed_at is None else ("tests.federate.killed_at", killed_at)
        with (self.folder / log).open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", *killer, *module],
                stdout=out,
                stderr=out,
                cwd=ROOT,
                env=self.environment,
            )
        self.processes.append(process)
        return process

    def hub(self, *options: str, killed_at: str | None = None) -> subprocess.Popen:
        """Starts the hub, and waits until it prints its address."""
        log = self.folder / "hub.log"
        before = log.stat().st_size if log.exists() else 0
        process = self.start(
            *("mainstem.cli", "hub", str(self.folder / "hub.toml"), "--json"),
            *("--folder", str(self.folder / "hub"), *options),
            log="hub.log",
            killed_at=killed_at,
        )
        printed = json.loads(self._line(process, log, before))
        self.url, self.credentials = printed["url"], printed.get("credentials")
        return process

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that may use the hub's server."""
        secret = {} if self.credentials is None else {"MAINSTEM_CREDENTIALS": self.credentials}
        return environment() | secret

    def _line(self, process: subprocess.Popen, log: Path, before: int) -> str:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            text = log.read_bytes()[before:].decode() if log.exists() else ""
            for line in text.splitlines():
                if line.startswith('{"url"'):
                    return line
            if process.poll() is not None:
                raise RuntimeError(f"the hub ended: {text}")
            time.sleep(0.05)
        raise RuntimeError(f"the hub did not start: {text}")

    def client(
        self, name: str, *, url: str | None = None, killed_at: str | None = None
    ) -> subprocess.Popen:
        """Starts a client, at the hub's address unless another is given."""
        folder = self.folder / f"client-{name}"
        folder.mkdir(exist_ok=True)
        return self.start(
            *(
                "tests.federate.replaying_client",
                str(self.file),
                url or self.url,
                name,
                str(folder),
            ),
            log=f"client-{name}.log",
            killed_at=killed_at,
        )

    def step(self) -> int:
        """The last step that the hub has printed; 0: none."""
        lines = (self.folder / "hub.log").read_text().splitlines()
        printed = [json.loads(line)["step"] for line in lines if line.startswith('{"run"')]
        return printed[-1] if printed else 0

    def reached(self, step: int, patience: float = PATIENCE) -> None:
        """Waits until the hub has reached this step."""
        end = time.monotonic() + patience
        while self.step() < step:
            assert time.monotonic() < end, f"the hub is at step {self.step()}, not at {step}"
            time.sleep(0.1)

    def model(self) -> np.ndarray:
        """The model that the hub has saved."""
        return read_model(self.folder / "hub" / MODEL, parse(self.document))

    def sent(self) -> Counter[tuple[str, int]]:
        """How often each (client, step) was sent, by the clients' logs."""
        return Counter(
            (log.stem.removeprefix("client-"), int(line.split()[0]))
            for log in self.folder.glob("client-*.sent")
            for line in log.read_text().splitlines()
        )

    def merged(self) -> Counter[tuple[str, int]]:
        """How often each (client, step) was merged, by the hub's log."""
        text = (self.folder / "hub" / "merges.jsonl").read_text()
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last may not be complete
        return Counter(
            (name, step) for line in lines for name, step, _ in json.loads(line).get("uploads", [])
        )

    def simulated(self) -> np.ndarray:
        """The last model of the same run in the simulator."""
        import jax

        algorithm = experiment.made("algorithm", algorithms, self.content["algorithm"])
        guards = self.rules.get("guard", True) and not algorithm.guards
        run = ms.simulate(
            ms.guarded(algorithm) if guards else algorithm,
            experiment.made("problem", problems, self.content["problem"]),
            stream_of(self.content),
            steps=self.rules["steps"],
            seed=self.rules.get("seed", 0),
            dtype=self.rules["dtype"],
            measure=(),
        )
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(run.model)])

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
