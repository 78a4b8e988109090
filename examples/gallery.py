"""Gallery: one small figure for each algorithm that shows its main property, from a run of seconds.

    python -m examples.gallery [folder]

These are the figures on the pages in docs/algorithms. Nothing is downloaded. `mainstem reproduce` runs the
papers' own experiments.
"""

import functools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image  # comes with matplotlib

import mainstem as ms
from mainstem.base import Algorithm
from mainstem.errors import Diverged
from mainstem.papers import fictitious_play as appendix_c
from mainstem.papers import mitra, rizk
from mainstem.report import figures

FOLDER = Path("docs/images")
DPI, COLOURS = 100, 64  # small files
CLIENTS = 100  # among which the digits are divided
FEW = 20  # clients of the generated streams
SHARED, OWN = 20, 2  # features of `personal`
SO_FAR = "average loss so far"

FEDOGD, TENTH, FIFTIETH = (ms.ofedavg(step=0.5, rate=rate) for rate in (1.0, 0.1, 0.02))
BOTH = ms.fedres_sgd(step=0.005, own_step=0.05)  # the server adds up the uploads of all clients
ALONE, SERVER = ms.independent(step=0.02), ms.central(step=0.005)

Figure = Any


@functools.cache
def digits(algorithm: Algorithm) -> ms.Run:
    """A run on handwritten digits, five seeds."""
    problem = ms.problems.softmax(features=64, classes=10)
    stream = ms.streams.digits(CLIENTS)
    return ms.simulate(algorithm, problem, stream, steps=300, seeds=5, measure=())


@functools.cache
def personal(
    algorithm: Algorithm, clients: int = FEW, apart: float = 1.0, delay: int = 0
) -> np.ndarray:
    """The average loss so far [seeds, steps], where labels have a shared and an own part."""
    run = ms.simulate(
        algorithm,
        ms.problems.personal(SHARED, OWN),
        ms.streams.residuals(clients, SHARED, OWN, own_norm=apart),
        steps=300,
        seeds=5,
        network=ms.network(up=delay, down=delay),
        measure=(),
    )
    return so_far(run)


def so_far(run: ms.Run) -> np.ndarray:
    """The average loss so far [seeds, steps]."""
    return np.cumsum(run.loss, axis=1) / np.arange(1, run.loss.shape[1] + 1)


def every(period: int) -> str:
    """How often the models are averaged, in words."""
    return "a mean every step" if period == 1 else f"a mean every {period} steps"


def fedogd() -> Figure:
    """FedOGD as the reference, and the effect of a tenth of its messages."""
    runs = {"FedOGD": FEDOGD, "OFedAvg, a tenth of the clients heard": TENTH}
    return figures.curves({name: digits(each).loss for name, each in runs.items()}, "loss")


def ofedavg() -> Figure:
    """Few messages are enough, too few are not."""
    runs = {
        "everybody heard (FedOGD)": FEDOGD,
        "rate 0.1: 90 % of the uplink saved": TENTH,
        "rate 0.02: 98 % saved": FIFTIETH,
    }
    return figures.curves({name: digits(each).accuracy for name, each in runs.items()}, "accuracy")


def ofediq() -> Figure:
    """Accuracy against the number of bits sent."""
    plan = ms.plan(budget=0.02, parameters=ms.problems.softmax(features=64, classes=10).parameters)
    planned = ms.ofediq(step=0.5, rate=plan.rate, levels=plan.levels, blocks=plan.blocks)
    runs = {
        "FedOGD": FEDOGD,
        "OFedAvg, 2 % of the uplink": FIFTIETH,
        "OFedIQ, planned for 2 %": planned,
    }
    spent = np.geomspace(1e5, 6e8, 200)
    curves = {name: _against(spent, digits(each)) for name, each in runs.items()}
    figure = figures.curves(curves, "accuracy", steps=spent, log="x")
    figure.axes[0].set_xlabel("bits sent up so far")
    return figure


def _against(grid: np.ndarray, run: ms.Run) -> np.ndarray:
    """The accuracy when this many bits had been sent; NaN before the first and after the last."""
    return np.array(
        [
            np.where(
                (grid >= bits[0]) & (grid <= bits[-1]), np.interp(grid, bits, accuracy), np.nan
            )
            for bits, accuracy in zip(run.uplink_bits, run.accuracy, strict=True)
        ]
    )


def fedomd() -> Figure:
    """Collective regret grows with the period."""
    size = {"steps": 1000, "seeds": 20}
    curves = {
        every(tau): mitra.regrets(ms.simulate(mitra.algorithm(tau), *mitra.world(), **size))
        for tau in (1, 5, 20)
    }
    return figures.curves(curves, "collective regret", log="x")


def fedsea() -> Figure:
    """The distance between the clients' models in a period."""
    problem, stream = ms.problems.quadratic(5), ms.streams.sea_quadratic(FEW, spatial=1.0)
    size = {"steps": 100, "seeds": 20, "measure": ["consensus"]}
    curves = {
        every(tau): ms.simulate(ms.fedsea(0.05, tau), problem, stream, **size).column("consensus")
        for tau in (1, 5, 20)
    }
    return figures.curves(curves, "consensus")


def dynamic_fedavg() -> Figure:
    """Section IV without drift: a larger step is faster and less exact."""
    size = {"steps": 300, "seeds": 10, "measure": ["deviation"]}
    runs = {
        f"step {step:g}": ms.simulate(rizk.algorithm(step), rizk.problem(), rizk.world(), **size)
        for step in (0.01, 0.1, 0.3)
    }
    return rizk.drawn({name: run.column("deviation") for name, run in runs.items()})


def fedres_sgd() -> Figure:
    """Shared and own models together, also with delays, and each alone."""
    slow = ms.fedres_sgd(step=0.0015, own_step=0.03)
    curves = {
        "FedRes.SGD": personal(BOTH),
        "FedRes.SGD, 5 steps each way, smaller step": personal(slow, delay=5),
        "Independent": personal(ALONE),
        "Central": personal(SERVER),
    }
    return figures.curves(curves, SO_FAR, log="xy")


def fedres_erm() -> Figure:
    """No step size to choose; a delay costs about its length."""
    erm = ms.fedres_erm(radius=2.0)
    curves = {
        "FedRes.ERM": personal(erm),
        "FedRes.ERM, 5 steps each way": personal(erm, delay=5),
        "FedRes.SGD, a step that suits": personal(BOTH),
    }
    return figures.curves(curves, SO_FAR, log="xy")


def fictitious_play() -> Figure:
    """Appendix C: the two parts block each other. Medians, since a few rollouts start very badly."""
    size = {"steps": 2000, "seeds": 10, "dtype": "float64"}
    curves = {}
    for name, rule in appendix_c.rules().items():
        run = ms.simulate(rule, appendix_c.problem(), appendix_c.world(), **size)
        curves[name] = np.median(so_far(run), axis=0, keepdims=True)
    return figures.curves(curves, f"{SO_FAR}, median of 10", log="xy")


def independent() -> Figure:
    """More clients do not help clients that do not communicate."""
    curves = {
        "Independent, 20 clients or any number": personal(ALONE),
        "FedRes.SGD, 5 clients": personal(ms.fedres_sgd(step=0.02, own_step=0.05), clients=5),
        "FedRes.SGD, 20 clients": personal(BOTH),
        "FedRes.SGD, 80 clients": personal(ms.fedres_sgd(step=0.00125, own_step=0.05), clients=80),
    }
    return figures.curves(curves, SO_FAR, log="xy")


def central() -> Figure:
    """The server cannot learn the own parts of the clients."""
    curves = {
        f"Central, own part of length {apart:g}": personal(SERVER, apart=apart)
        for apart in (0.0, 0.3)
    }
    curves["Central, own part of length 1"] = personal(SERVER)
    curves["FedRes.SGD, own part of length 1"] = personal(BOTH)
    return figures.curves(curves, SO_FAR, log="xy")


def guarded() -> Figure:
    """One site of four with features that are eight times too large."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(4, 300, 5)).astype(np.float32)
    targets = features @ np.array([1.0, -2.0, 0.5, 1.5, -1.0], np.float32)
    targets += 0.1 * rng.normal(size=targets.shape).astype(np.float32)
    features[3] *= 8

    def honest(algorithm: Algorithm, sites: int) -> np.ndarray:
        rows = features[:sites].reshape(-1, 5), targets[:sites].reshape(-1)
        stream = ms.streams.arrays(*rows, keys=np.repeat(np.arange(sites), 300))
        problem, asked = ms.problems.linear(5), ["loss per client"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Diverged)  # that is what it shows
            run = ms.simulate(algorithm, problem, stream, steps=150, measure=asked)
        losses = run.column("loss_per_client")[:, :3].mean(axis=1)
        return np.cumsum(losses)[None] / np.arange(1, 151)

    plain = ms.fedogd(step=0.05)
    curves = {
        "without the faulty site": honest(plain, 3),
        "with it, guarded": honest(ms.guarded(plain), 4),
        "with it": honest(plain, 4),
    }
    figure = figures.curves(curves, SO_FAR, log="xy")
    figure.axes[0].set_ylim(0.01, 1e4)  # the last one has no limit
    return figure


GALLERY: dict[str, Callable[[], Figure]] = {
    figure.__name__: figure
    for figure in (
        fedogd,
        ofedavg,
        ofediq,
        fedomd,
        fedsea,
        dynamic_fedavg,
        fedres_sgd,
        fedres_erm,
        fictitious_play,
        guarded,
        independent,
        central,
    )
}


def main(folder: Path = FOLDER) -> None:
    """Draws all figures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in GALLERY.items():
        place = folder / f"{name}.png"
        figure().savefig(place, dpi=DPI)
        Image.open(place).convert("RGB").quantize(COLOURS).save(place, optimize=True)
        print(place)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
