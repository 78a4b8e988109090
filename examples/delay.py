"""What delay costs FedRes.SGD (Agarwal et al. 2020, Sections 3.2 and 6.5).

    MAINSTEM_DATA=... python -m examples.delay

Round trips of 1, 11, 51 and 201 steps, half up and half down: the algorithm as written (aligned) beside
the two mis-aligned rules of Section 3.2.1. First the average loss on a generated i.i.d. world with the
step sizes of Theorem 2, and with the step for a round trip of 1 kept for all; then held-out accuracy on
pendigits (Section 6.1: 50 clients, T = 500, 50 rollouts) with AdaGrad.
"""

import functools
from pathlib import Path

import numpy as np

import mainstem as ms
from mainstem import parts
from mainstem.base import Step, Stream
from mainstem.parts.network import Network
from mainstem.report import figures

ROUND_TRIPS = (1, 11, 51, 201)
VARIANTS = ("aligned", "undelayed", "on_arrival")
CLIENTS, SHARED, OWN, NOISE = 20, 10, 5, 0.1
SCALES = (0.1, 0.3, 1.0)


def links(round_trip: int) -> Network:
    """The paper's alpha + beta: one step more than our extra delays."""
    extra = (round_trip - 1) // 2
    return ms.network(up=extra, down=extra)


# --- a generated world, with the theorem's steps --------------------------------------------------


@functools.cache
def world() -> Stream:
    """Twenty linear tasks with a shared and an own part."""
    return ms.streams.residuals(CLIENTS, SHARED, OWN, noise=NOISE)


@functools.cache
def regression():
    """Their problem."""
    return ms.problems.personal(SHARED, OWN)


def theorem_step(round_trip: int, steps: int) -> Step:
    """Theorem 2, with the constants of this world at the start, where they are largest.

    With x ~ N(0, I) in d dimensions and |u|^2 = 2, E |2 y x|^2 = 4 (2 (d + 2) + noise^2 d), of which
    |2u|^2 = 8 is the mean; the mean loss is 2-smooth.
    """
    size = SHARED + OWN
    squared = 4 * (2 * (size + 2) + NOISE**2 * size)
    known = {"norm": 1 + CLIENTS, "noise": squared - 8, "smoothness": 2, "gradient": squared**0.5}
    return ms.rules.fedres_convex(steps, clients=CLIENTS, round_trip=round_trip, **known)


def average_loss(variant: str, step: float, round_trip: int, steps: int, seeds: int) -> float:
    """Over all steps, clients and seeds."""
    algorithm = ms.fedres_sgd(step, domain=parts.l2_ball(2.0), variant=variant)
    chosen = {"steps": steps, "seeds": seeds, "network": links(round_trip)}
    return float(np.mean(ms.simulate(algorithm, regression(), world(), **chosen).loss))


def generated(steps: int = 5000, seeds: int = 4) -> dict[str, dict[str, list[float]]]:
    """Average losses by rule of step, variant and round trip."""
    first = theorem_step(1, steps)
    rules = {
        "the theorem's step": [theorem_step(tau, steps) for tau in ROUND_TRIPS],
        "one step for all": [first] * len(ROUND_TRIPS),
    }
    return {
        name: {
            variant: [
                average_loss(variant, step, tau, steps, seeds)
                for step, tau in zip(etas, ROUND_TRIPS, strict=True)
            ]
            for variant in VARIANTS
        }
        for name, etas in rules.items()
    }


# --- pendigits ------------------------------------------------------------------------------------


@functools.cache
def tasks() -> Stream:
    """Fifty clients, each with a class of its own against C0."""
    return ms.streams.tasks("pendigits", clients=50)


@functools.cache
def classification():
    """Squared loss on labels -1 and 1, a constant for each part."""
    return ms.problems.personal(8, 8, classes=2, intercept=True)


BUILD = {
    "independent": lambda scale, _: ms.independent(parts.adagrad(scale)),
    "central": lambda scale, _: ms.central(parts.adagrad(scale)),
    "fedres": lambda scale, variant: ms.fedres_sgd(parts.adagrad(scale), variant=variant),
}


def accuracy(name: str, scale: float, variant: str, round_trip: int, seeds: int) -> np.ndarray:
    """Balanced held-out accuracy of each rollout, the mean over its clients."""
    chosen = {"steps": 500, "seeds": seeds, "network": links(round_trip)}
    run = ms.simulate(BUILD[name](scale, variant), classification(), tasks(), **chosen)
    return run.held_out()["correct"].mean(axis=1)


def main(folder: Path = Path("runs/delay"), seeds: int = 50) -> None:
    """Print both tables with their verdicts, and draw the second."""
    folder.mkdir(parents=True, exist_ok=True)
    heading = "".join(f"{tau:>12}" for tau in ROUND_TRIPS)
    print("average loss on a generated world, by round trip" + heading)
    for rule, found in generated().items():
        for variant, losses in found.items():
            cells = "".join(f"{loss:12.4f}" for loss in losses)
            print(f"  {rule:24}{variant:>22}{cells}")
        print(f"  {'':24}{'lowest':>22}" + "".join(f"{best:>12}" for best in _lowest(found)))
    sweep = {
        name: {s: accuracy(name, s, "aligned", 1, seeds).mean() for s in SCALES} for name in BUILD
    }
    best = {name: max(found, key=found.get) for name, found in sweep.items()}
    print("pendigits, no delay: accuracy by AdaGrad's scale (the best is used below)")
    for name, found in sweep.items():
        print(f"  {name:24}" + "".join(f"{s:>8}: {value:.4f}" for s, value in found.items()))
    print("pendigits, held-out accuracy by round trip" + heading)
    curves = {}
    for variant in VARIANTS:
        found = [accuracy("fedres", best["fedres"], variant, tau, seeds) for tau in ROUND_TRIPS]
        curves[f"fedres, {variant}"] = np.stack(found, axis=1)
    found = [accuracy("central", best["central"], "", tau, seeds) for tau in ROUND_TRIPS]
    curves["central"] = np.stack(found, axis=1)
    alone = accuracy("independent", best["independent"], "", 1, seeds)
    curves["independent, no links"] = np.repeat(alone[:, None], len(ROUND_TRIPS), axis=1)
    for name, values in curves.items():
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / len(values) ** 0.5
        cells = "".join(f"{m:7.4f}±{e:.3f}" for m, e in zip(mean, error, strict=True))
        print(f"  {name:40}{cells}")
    _verdict(curves)
    steps = np.array(ROUND_TRIPS)
    figures.curves(curves, "held-out accuracy by round trip", steps=steps, log="x").savefig(
        folder / "delay.png", dpi=150
    )
    print(f"figure in {folder}")


def _lowest(found: dict[str, list[float]]) -> list[str]:
    """The variant with the lowest loss at each round trip, where they differ."""
    best = []
    for losses in zip(*found.values(), strict=True):
        same = max(losses) - min(losses) < 1e-6
        best.append("the same" if same else list(found)[int(np.argmin(losses))])
    return best


def _verdict(curves: dict[str, np.ndarray]) -> None:
    """What the paper's point comes to here."""
    mean = {name: values.mean(axis=0) for name, values in curves.items()}
    drops = {v: mean[f"fedres, {v}"][0] - mean[f"fedres, {v}"][-1] for v in VARIANTS}
    print(
        "verdict: from no delay to a round trip of 201 accuracy falls by "
        + ", ".join(f"{drop:.3f} ({variant})" for variant, drop in drops.items())
    )
    worst = min(drops, key=drops.get)
    print(f"         aligned is {'' if worst == 'aligned' else 'not '}the most robust; {worst} is")


if __name__ == "__main__":
    main()
