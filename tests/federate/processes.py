"""Hubs and clients as real processes."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import tomli_w

import mainstem as ms
from mainstem import algorithms, experiment, problems
from tests.federate.worlds import stream_of

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
ROOT = Path(__file__).parents[2]


class Site:
    """A folder with an experiment, its hub and its clients."""

    def __init__(self, folder: Path, content: dict):
        self.folder = folder
        self.content = content
        self.rules = content["federate"]
        self.file = folder / "run.toml"
        folder.mkdir(parents=True, exist_ok=True)
        self.file.write_text(tomli_w.dumps(content))
        only = {key: content[key] for key in ("problem", "algorithm", "federate")}
        (folder / "hub.toml").write_text(tomli_w.dumps(only))
        self.processes: list[subprocess.Popen] = []

    def start(self, *arguments: str, log: str, **environment: str) -> subprocess.Popen:
        with (self.folder / log).open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                stdout=out,
                stderr=out,
                cwd=ROOT,
                env=ENVIRONMENT | environment,
            )
        self.processes.append(process)
        return process

    def hub(self, *options: str, **environment: str) -> subprocess.Popen:
        """Start the hub, and wait until it says where it is."""
        log = self.folder / "hub.log"
        before = log.stat().st_size if log.exists() else 0
        process = self.start(
            *("-m", "mainstem.cli", "hub", str(self.folder / "hub.toml"), "--json"),
            *("--folder", str(self.folder / "hub"), *options),
            log="hub.log",
            **environment,
        )
        self.url = json.loads(self._line(process, log, before))["url"]
        return process

    def _line(self, process: subprocess.Popen, log: Path, before: int) -> str:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            text = log.read_bytes()[before:].decode() if log.exists() else ""
            for line in text.splitlines():
                if line.startswith('{"url"'):
                    return line
            if process.poll() is not None:
                raise RuntimeError(f"the hub ended: {text}")
            time.sleep(0.05)
        raise RuntimeError(f"the hub did not start: {text}")

    def client(self, name: str, *, url: str | None = None, **environment: str) -> subprocess.Popen:
        """Start a client, at the hub's address unless it is told another."""
        place = self.folder / f"client-{name}"
        place.mkdir(exist_ok=True)
        return self.start(
            *("-m", "tests.federate.twin", str(self.file), url or self.url, name, str(place)),
            log=f"client-{name}.log",
            **environment,
        )

    def step(self) -> int:
        """How far the hub says it is."""
        lines = (self.folder / "hub.log").read_text().splitlines()
        said = [json.loads(line)["step"] for line in lines if line.startswith('{"run"')]
        return said[-1] if said else 0

    def reached(self, step: int, patience: float = 60.0) -> None:
        """Wait until the hub is so far."""
        end = time.monotonic() + patience
        while self.step() < step:
            assert time.monotonic() < end, f"the hub is at step {self.step()}, not at {step}"
            time.sleep(0.1)

    def model(self) -> np.ndarray:
        """The model that the hub left."""
        with np.load(self.folder / "hub" / "model.npz") as found:
            return found["model"]

    def sent(self) -> Counter[tuple[str, int]]:
        """Which client said what step how often, by the clients' own logs."""
        return Counter(
            (log.parent.name.removeprefix("client-"), int(line.split()[0]))
            for log in self.folder.glob("client-*/sent.log")
            for line in log.read_text().splitlines()
        )

    def merged(self) -> Counter[tuple[str, int]]:
        """Which client's what step was merged how often, by the hub's log."""
        lines = (self.folder / "hub" / "merges.jsonl").read_text().splitlines()
        return Counter(
            (name, step) for line in lines for name, step, _ in json.loads(line)["uploads"]
        )

    def simulated(self) -> np.ndarray:
        """The model of the simulation of the same."""
        import jax

        run = ms.simulate(
            experiment.made("algorithm", algorithms, self.content["algorithm"]),
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
