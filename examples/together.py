"""Where learning together wins, and where it does not: five sites that read handwritten digits.

    python -m examples.together [folder]

Each site sees 100 images, guesses each digit, and learns the answer after. Together they send gradients and no
images (FedOGD); alone each learns from its own images with the same model. Both sides have the best of the same
step sizes. In the first case every site sees all ten digits: 100 images are few. In the second each site has two
digits of its own, and what the others know is of no use to it.

Then the first case runs for real: a hub and five sites as processes, with a live page to look at. Each start has a
new folder, runs/together/1, 2, ...: in an old one the hub and the sites would go on where they were.
"""

import json
import os
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from sklearn.datasets import load_digits

import mainstem as ms

FOLDER = Path("runs/together")
SITES, IMAGES, SEEDS = 5, 100, 10
STEPS = (0.1, 0.3, 1.0, 3.0)  # sizes that both sides may choose from
PAUSE = 0.15  # seconds between two images of a site, in the run to look at
NAMES = [f"site-{n}" for n in range(SITES)]
CASES = {"all ten digits at each site": False, "two digits of its own at each site": True}
PROBLEM = {"name": "softmax", "features": 64, "classes": 10}
Data = tuple[np.ndarray, np.ndarray]  # images [step, site, pixel] and digits [step, site]


def dealt(seed: int, own: bool) -> Data:
    """The images of each site, in an order that the seed draws; `own`: each site has two of the digits."""
    pixels, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(digits))
    if own:
        rows = [order[digits[order] // 2 == k][:IMAGES] for k in range(SITES)]
    else:
        rows = np.split(order[: SITES * IMAGES], SITES)
    places = np.stack(rows, axis=1)
    return (pixels / 16).astype(np.float32)[places], digits[places]


def accuracy(algorithm: Any, data: Data) -> float:
    """The share of digits that the sites guess right."""
    images, digits = data
    keys = np.tile(np.arange(SITES), IMAGES)
    stream = ms.streams.arrays(images.reshape(-1, 64), digits.ravel(), keys=keys)
    problem = ms.problems.softmax(features=64, classes=10)
    return float(ms.simulate(algorithm, problem, stream, steps=IMAGES).accuracy[-1])


def best(algorithm: Any, own: bool) -> tuple[np.ndarray, float]:
    """The accuracy for each seed with the step size that is best on average, and that size."""
    found = {
        step: np.array([accuracy(algorithm(step), dealt(seed, own)) for seed in range(SEEDS)])
        for step in STEPS
    }
    step = max(found, key=lambda step: found[step].mean())
    return found[step], step


def compared() -> tuple[float, float]:
    """Prints the table of both cases; returns the best steps of the first, of learning together and alone."""
    print(f"{'share of digits guessed right':38}{'together':>18}{'alone':>18}{'difference':>18}")
    steps = []
    for name, own in CASES.items():
        (together, step), (alone, lone_step) = best(ms.fedogd, own), best(ms.independent, own)
        steps.append((step, lone_step))
        cells = (together, alone, together - alone)
        print(f"{name:38}" + "".join(f"{_with_error(each):>18}" for each in cells), flush=True)
    print(f"{SEEDS} seeds; ± is the standard error over them, of the difference seed by seed\n")
    return steps[0]


def _with_error(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def images() -> Iterator[tuple[np.ndarray, int]]:
    """What the site SITE sees, one image after the other: the stream of its process."""
    pixels, digits = dealt(0, own=False)
    k = NAMES.index(os.environ["SITE"])
    for image, digit in zip(pixels[:, k], digits[:, k], strict=True):
        time.sleep(PAUSE)
        yield image, int(digit)


def live(folder: Path, step: float, alone: float) -> None:
    """Runs the first case as processes, and prints what each site has sent, and what it has gained.

    `step` is that of the run, `alone` that of the models that the sites learn alone to compare.
    """
    run = folder / "digits.toml"
    rules = {"run": "digits", "clients": NAMES, "pace": "lockstep", "steps": IMAGES}
    algorithm = {"name": "fedogd", "step": step}
    run.write_text(tomli_w.dumps({"problem": PROBLEM, "algorithm": algorithm, "federate": rules}))
    words = ("--folder", folder / "hub", "--dashboard", "127.0.0.1:0", "--log-level", "warning")
    hub = started("hub", run, *words, "--json")
    sites = {}
    try:
        assert hub.stdout is not None
        for line in hub.stdout:
            printed = json.loads(line)
            if "url" in printed:
                url, secret = printed["url"], ("--credentials", printed["credentials"])
            if "page" in printed:
                break
        else:
            raise SystemExit("the hub has ended before the sites came: its log is above")
        page = printed["page"]
        print(f"the live page of this run: {page}")
        if sys.stdout.isatty():
            webbrowser.open(page)
        for name in NAMES:
            words = ("join", url, "--run", "digits", "--client", name, "--json", *secret)
            words += ("--alone", alone)
            where = ("--stream", "examples.together:images", "--folder", folder / name)
            sites[name] = started(*words, *where, site=name)
        watch(hub, sites)
        for name, process in sites.items():
            found = json.loads(process.communicate(timeout=60)[0])
            print(
                f"  {name}: mean loss {found['mean_loss']:.3f}, {found['gain']:.3f} less than alone, "
                f"{found['bytes_sent']:,} bytes sent"
            )
        print("  no image has left its site")
    finally:
        for process in (*sites.values(), hub):
            with process:  # waits, and closes its output
                process.terminate()


def started(*words: object, site: str = "") -> "subprocess.Popen[str]":
    """A process of the command line."""
    command = [sys.executable, "-m", "mainstem.cli", *map(str, words)]
    return subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, env={**os.environ, "SITE": site}
    )


def watch(hub: "subprocess.Popen[str]", sites: "dict[str, subprocess.Popen[str]]") -> None:
    """Shows the merges until all sites are done."""
    assert hub.stdout is not None
    while any(site.poll() is None for site in sites.values()):
        line = hub.stdout.readline()
        if not line:
            return  # the run is finished
        status = json.loads(line)
        here = sum(site["state"] == "present" for site in status["clients"].values())
        shown = f"  merge {status['version']} of {IMAGES}, {here} of {SITES} sites here "
        print(shown, end="\r" if sys.stdout.isatty() else "\n", flush=True)
    print()


def new_folder(folder: Path) -> Path:
    """Makes the next of the numbered folders inside of `folder`; nothing is deleted."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [int(each.name) for each in folder.iterdir() if each.name.isdecimal()]
    made = folder / str(max(numbers, default=0) + 1)
    made.mkdir()
    return made


def main(folder: Path = FOLDER) -> None:
    """Compares, and then runs for real."""
    step, alone = compared()
    try:
        live(new_folder(folder), step, alone)
    except KeyboardInterrupt:
        sys.exit("\ninterrupted: the next start is a new run")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
