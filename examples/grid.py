"""Federation of eight grid zones that predict the next hour's load: a hub, eight clients, a private NATS server.

    python -m examples.grid [folder]

Each zone has its own hours in a CSV file and does not share them. The processes are one `mainstem hub` and
eight `mainstem join`. At the end, a table compares the loss of learning together with that of each zone alone
and that of one model trained on all data, and gives the bytes that each zone sent. The data is `pjm_hourly` if
it is available, else a stand-in with the same columns.
"""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import tomli_w

import mainstem as ms
from mainstem.datasets import pjm
from mainstem.errors import MainstemError

FOLDER = Path("runs/grid")
HOURS = 4000
STEP, PERIOD = 0.02, 24  # the models are averaged once a day
COLUMNS = (*(f"lag_{lag}" for lag in pjm.LAGS), *pjm.CALENDAR)


def zones() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Features and loads of each zone, hour by hour."""
    try:
        table = ms.datasets.load("pjm_hourly")
    except MainstemError as error:
        print(f"pjm_hourly is not here ({error}): a stand-in is made")
        return stand_in()
    assert table.keys is not None
    return {
        zone: (table.features[table.keys == zone][:HOURS], table.target[table.keys == zone][:HOURS])
        for zone in pjm.ZONES
    }


def stand_in() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Generated loads with daily and weekly cycles, each zone with its own shape and noise."""
    found = {}
    for k, zone in enumerate(pjm.ZONES):
        draw = np.random.default_rng(k)
        hours = np.arange(HOURS + max(pjm.LAGS))
        day, week = 2 * np.pi * hours / 24, 2 * np.pi * hours / 168
        load = (
            1
            + 0.2 * np.sin(day + 0.2 * k)
            + 0.1 * np.sin(week)
            + 0.03 * draw.normal(size=len(hours))
        )
        lags = np.stack([np.roll(load, lag) for lag in pjm.LAGS], axis=1)
        calendar = np.stack([np.sin(day), np.cos(day), np.sin(week), np.cos(week)], axis=1)
        kept = slice(max(pjm.LAGS), None)
        found[zone] = (np.concatenate([lags, calendar], axis=1)[kept], load[kept])
    return found


def written(folder: Path, each: dict[str, tuple[np.ndarray, np.ndarray]]) -> Path:
    """Writes a file for each zone and the run file; returns the latter."""
    for zone, (features, load) in each.items():
        with (folder / f"{zone}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([*COLUMNS, "load"])
            rows.writerows(np.column_stack([features, load]).tolist())
    run = folder / "grid.toml"
    content = {
        "problem": {"name": "linear", "features": len(COLUMNS)},
        "algorithm": {"name": "fedsea", "step": STEP, "period": PERIOD},
        "federate": {
            "run": "grid",
            "clients": list(each),
            "features": list(COLUMNS),
            "pace": "lockstep",  # an hour is the same hour in every zone
            "steps": HOURS,
        },
    }
    run.write_text(tomli_w.dumps(content))
    return run


def mainstem(*words: object) -> "subprocess.Popen[str]":
    """Starts a process of the command line."""
    command = [sys.executable, "-m", "mainstem.cli", *map(str, words)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE)


def federated(folder: Path, run: Path) -> dict[str, dict[str, float]]:
    """The final output of each zone's client."""
    hub = mainstem("hub", run, "--folder", folder / "hub", "--json")
    clients = {}
    try:
        assert hub.stdout is not None
        printed = json.loads(hub.stdout.readline())
        url, secret = printed["url"], ("--credentials", printed["credentials"])
        print(f"a hub at {url}; look at it with `mainstem status {url} {' '.join(secret)}`")
        for zone in pjm.ZONES:
            words = ("join", url, "--run", "grid", "--client", zone, "--json", *secret)
            files = ("--stream", folder / f"{zone}.csv", "--folder", folder / zone)
            clients[zone] = mainstem(*words, *files)
        _watch(hub, clients)
        found = {}
        for zone, client in clients.items():
            out, _ = client.communicate(timeout=60)
            found[zone] = json.loads(out)
        return found
    finally:
        for process in (*clients.values(), hub):
            process.terminate()
            process.wait()


def _watch(hub: "subprocess.Popen[str]", clients: dict[str, "subprocess.Popen[str]"]) -> None:
    """Prints the status every second, until all zones are done."""
    assert hub.stdout is not None
    while any(client.poll() is None for client in clients.values()):
        line = hub.stdout.readline()
        if not line:
            return  # the run is finished
        status = json.loads(line)
        done = [zone["merged"] for zone in status["clients"].values()]
        present = sum(zone["state"] == "present" for zone in status["clients"].values())
        line = f"  merge {status['version']}: {present} zones present, hour {min(done)} of {HOURS}"
        print(line, end="\r" if sys.stdout.isatty() else "\n", flush=True)


def followed(features: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """The mean loss of each zone when one linear model learns all of these [hours, zones, ...] at once."""
    shown = np.concatenate([features, np.ones((*features.shape[:2], 1))], axis=2)
    model, losses = np.zeros(shown.shape[2]), np.zeros(loads.shape[1])
    for x, y in zip(shown, loads, strict=True):
        off = x @ model - y
        losses += off**2 / 2
        model -= STEP * off @ x / len(off)
    return losses / len(loads)


def main(folder: Path = FOLDER) -> None:
    """Runs the federation, and prints the table."""
    if (folder / "grid.toml").exists():
        shutil.rmtree(folder)  # of an earlier call
    folder.mkdir(parents=True, exist_ok=True)
    each = zones()
    found = federated(folder, written(folder, each))
    features = np.stack([features for features, _ in each.values()], axis=1)
    loads = np.stack([load for _, load in each.values()], axis=1)
    pooled = followed(features, loads)
    rows = []
    for k, (zone, result) in enumerate(found.items()):
        alone = followed(features[:, k : k + 1], loads[:, k : k + 1])
        rows.append((zone, result["mean_loss"], alone[0], pooled[k], result["bytes_sent"]))
    print(f"{'mean loss':>12}{'together':>12}{'alone':>12}{'pooled':>12}{'bytes sent':>14}")
    for zone, together, alone_, all_data, sent in rows:
        print(f"{zone:>12}{together:12.6f}{alone_:12.6f}{all_data:12.6f}{sent:14,.0f}")
    means = np.mean([row[1:4] for row in rows], axis=0)
    total = sum(row[4] for row in rows)
    print(f"{'all':>12}{means[0]:12.6f}{means[1]:12.6f}{means[2]:12.6f}{total:14,.0f}")
    whole = features.nbytes + loads.nbytes
    print(f"pooling would have sent {whole:,} bytes of raw data")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
