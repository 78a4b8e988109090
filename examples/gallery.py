"""One small figure for each algorithm, from a run of seconds: what the algorithm is about.

    python -m examples.gallery [folder]

The figures on the pages in docs/algorithms. Nothing is downloaded. For the papers' own experiments see
the other examples, which take longer.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mainstem as ms
from examples import fictitious_play as appendix_c
from examples.dynamic_fedavg import msd, world
from examples.fedomd_regret import regrets
from mainstem import parts
from mainstem.base import Algorithm
from mainstem.report import figures

FOLDER = Path("docs/images")
DPI = 100
CLIENTS = 100  # that share the digits
FEW = 20  # in the generated worlds
SHARED, OWN = 20, 2  # features
STEP, OWN_STEP = 0.005, 0.05  # FedRes's: the server adds up what all clients say

Figure = Any


def digits(algorithm: Algorithm, *, steps: int = 300) -> ms.Run:
    """Handwritten digits, five seeds."""
    problem = ms.problems.softmax(features=64, classes=10)
    stream = ms.streams.digits(CLIENTS)
    return ms.simulate(algorithm, problem, stream, steps=steps, seeds=5, measure=())


def personal(
    algorithm: Algorithm,
    *,
    clients: int = FEW,
    apart: float = 1.0,
    steps: int = 300,
    delay: int = 0,
) -> np.ndarray:
    """The average loss so far [seeds, steps] where labels have a shared and an own part."""
    run = ms.simulate(
        algorithm,
        ms.problems.personal(SHARED, OWN),
        ms.streams.residuals(clients, SHARED, OWN, apart=apart),
        steps=steps,
        seeds=5,
        network=ms.network(up=delay, down=delay),
        measure=(),
    )
    return so_far(run.loss)


def so_far(losses: np.ndarray) -> np.ndarray:
    """The mean of the losses up to each step."""
    return np.cumsum(losses, axis=1) / np.arange(1, losses.shape[1] + 1)


def relabelled(figure: Figure, x: str) -> Figure:
    """The figure with another label on its x axis."""
    figure.axes[0].set_xlabel(x)
    return figure


def fedogd() -> Figure:
    """The reference, and what a tenth of its messages does."""
    runs = {
        "FedOGD": digits(ms.fedogd(step=0.5)),
        "OFedAvg, a tenth of the clients heard": digits(ms.ofedavg(step=0.5, rate=0.1)),
    }
    return figures.curves({name: run.loss for name, run in runs.items()}, "loss", log="y")


def ofedavg() -> Figure:
    """Regret at three rates, each with Theorem 1's bound."""
    step, steps, rates = 0.02, 1000, (1.0, 0.25, 0.05)
    problem, stream = ms.problems.quadratic(), ms.streams.alternating(FEW)
    regret, bounds = {}, {}
    for rate in rates:
        name = f"rate {rate:g}"
        algorithm = ms.ofedavg(step, rate)
        run = ms.simulate(algorithm, problem, stream, steps=steps, seeds=20)
        found = run.regret("all")
        regret[name] = found.values
        best = np.cumsum(run.loss, axis=1) - found.values  # of each prefix; |gradient|^2 = 2 loss
        bounds[name] = (
            float(found.params @ found.params) / (2 * step)
            + 2 * step * np.mean(best, axis=0) / rate
        )
    return figures.curves(regret, "regret (dashed: Theorem 1)", bounds=bounds, log="xy")


def ofediq() -> Figure:
    """Accuracy against what was sent."""
    size = ms.problems.softmax(features=64, classes=10).size
    plan = ms.plan(budget=0.02, parameters=size)
    planned = {"rate": plan.rate, "levels": plan.levels, "blocks": plan.blocks}
    runs = {
        "FedOGD": digits(ms.fedogd(step=0.5)),
        "OFedAvg, 2 % of the uplink": digits(ms.ofedavg(step=0.5, rate=0.02)),
        "OFedIQ, planned for 2 %": digits(ms.ofediq(step=0.5, **planned)),
    }
    spent = np.geomspace(1e5, 4e7, 200)
    curves = {
        name: np.array(
            [_at(spent, *pair) for pair in zip(run.uplink_bits, run.accuracy, strict=True)]
        )
        for name, run in runs.items()
    }
    drawn = figures.curves(curves, "accuracy", steps=spent, log="x")
    return relabelled(drawn, "bits sent up so far")


def _at(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """y at the points of the grid that x has reached."""
    return np.where((grid >= x[0]) & (grid <= x[-1]), np.interp(grid, x, y), np.nan)


def fedomd() -> Figure:
    """Collective regret grows with the gap between syncs."""
    curves = {f"a mean every {tau} steps": regrets(tau, steps=1000, seeds=20) for tau in (1, 5, 20)}
    return figures.curves(curves, "collective regret", log="x")


def fedsea() -> Figure:
    """How far apart the clients' models drift between two means."""
    problem, stream = ms.problems.quadratic(5), ms.streams.sea_quadratic(FEW, spatial=1.0)
    curves = {}
    for tau in (1, 5, 20):
        algorithm = ms.fedsea(step=0.05, period=tau)
        run = ms.simulate(algorithm, problem, stream, steps=100, seeds=20, measure=["consensus"])
        curves[f"a mean every {tau} steps" if tau > 1 else "a mean every step"] = run.consensus
    return figures.curves(curves, "consensus")


def fedres_sgd() -> Figure:
    """Shared and own models against each alone, and over slow links."""
    both = ms.fedres_sgd(STEP, own_step=OWN_STEP)
    slow = ms.fedres_sgd(STEP / 5, own_step=OWN_STEP / 5)
    curves = {
        "FedRes.SGD": personal(both),
        "FedRes.SGD, 10 steps each way, a fifth of the step": personal(slow, delay=10),
        "Independent": personal(ms.independent(0.02)),
        "Central": personal(ms.central(STEP)),
    }
    return figures.curves(curves, "average loss so far", log="xy")


def fedres_erm() -> Figure:
    """No step to choose; a delay costs its length."""
    curves = {
        "FedRes.ERM": personal(ms.fedres_erm(), steps=200),
        "FedRes.ERM, 10 steps each way": personal(ms.fedres_erm(), steps=200, delay=10),
        "FedRes.SGD": personal(ms.fedres_sgd(STEP, own_step=OWN_STEP), steps=200),
        "fictitious play": personal(ms.fictitious_play(), steps=200),
    }
    return figures.curves(curves, "average loss so far", log="xy")


def fictitious_play() -> Figure:
    """Appendix C: the two sides lock each other."""
    names = ("SGD, step 0.1", "ERM (Algorithms 1, 2)", "fictitious play")
    curves = {
        name: appendix_c.outcome(appendix_c.RULES[name], steps=2000, seeds=10)[0] for name in names
    }
    return figures.curves(curves, "average loss so far", log="xy")


def independent() -> Figure:
    """More clients are no help to those who do not talk."""
    curves = {
        f"FedRes.SGD, {clients} clients": personal(
            ms.fedres_sgd(0.1 / clients, own_step=OWN_STEP), clients=clients
        )
        for clients in (5, 20, 80)
    }
    curves["Independent, any number"] = personal(ms.independent(0.02), clients=80)
    return figures.curves(curves, "average loss so far", log="xy")


def central() -> Figure:
    """What clients have of their own, the server cannot learn."""
    curves = {
        f"Central, own part of length {apart:g}": personal(ms.central(STEP), apart=apart)
        for apart in (0.0, 0.3, 1.0)
    }
    curves["FedRes.SGD, own part of length 1"] = personal(ms.fedres_sgd(STEP, own_step=OWN_STEP))
    return figures.curves(curves, "average loss so far", log="xy")


def dynamic_fedavg() -> Figure:
    """Section IV without drift: a larger step is faster and less exact."""
    curves = {
        f"step {step:g}": np.atleast_2d(msd(step, world(0.0), steps=300, seeds=10))
        for step in (0.01, 0.1, 0.3)
    }
    return figures.curves(curves, "MSD (dB)")


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
        independent,
        central,
    )
}


def main(folder: Path = FOLDER) -> None:
    """Draw them all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in GALLERY.items():
        place = folder / f"{name}.png"
        figure().savefig(place, dpi=DPI)
        print(place)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
