"""Federated contextual bandits (Agarwal et al. 2020, Section 5): a generated one, and a recommender's log.

    MAINSTEM_DATA=... python -m examples.bandits

Generated: 20 clients, 5 actions, rewards with a shared and a personal part of equal weight; exploration
every B-th step with B from Theorem 3, and with B = T^(1/4), its order without its constants; average
regret (11) of the personal federated bandit beside each client alone and one model for all, ten seeds.
Log: the Open Bandit Dataset (uniformly random policy, 80 items, seven user segments as clients),
replayed; what each learnt policy would have earned, by inverse propensity and doubly robust, with 95 %
intervals.
"""

import functools
from pathlib import Path

import numpy as np

import mainstem as ms
from mainstem import parts
from mainstem.base import Algorithm, Stream
from mainstem.report import figures

CLIENTS, ACTIONS, SHARED, OWN, NOISE = 20, 5, 5, 5, 0.1
HORIZONS = (2000, 16000, 128000)
SHORT = HORIZONS[0]
SCALES = (0.03, 0.1, 0.3)
BUILD = {
    "fedres": lambda scale: ms.fedres_sgd(parts.adagrad(scale)),
    "independent": lambda scale: ms.independent(parts.adagrad(scale)),
    "central": lambda scale: ms.central(parts.adagrad(scale)),
}


@functools.cache
def world() -> Stream:
    """Contexts and rewards, drawn anew for every seed."""
    return ms.streams.linear_bandit(CLIENTS, ACTIONS, SHARED, OWN, noise=NOISE)


def period(steps: int) -> int:
    """B of Theorem 3: |w|^2 = 1/16 for each unit direction, and the constant 1/2; reward noise 0.01."""
    known = {"norm": (1 + CLIENTS) / 16 + 0.25, "noise": NOISE**2, "smoothness": 2}
    known |= {"clients": CLIENTS, "actions": ACTIONS, "gradient": 1, "radius": 1}
    return ms.rules.fedres_exploration(steps, **known)


@functools.cache
def problem(every: int):
    """Regression by a shared and an own part, explored every so many steps."""
    of = ms.problems.personal(SHARED, OWN, intercept=True)
    return ms.problems.bandit(of, ACTIONS, period=every)


def order(steps: int) -> int:
    """B of the same order in T, with the constant 1."""
    return round(steps**0.25)


def regret(algorithm: Algorithm, steps: int, every: int, seeds: int = 10) -> np.ndarray:
    """Average regret so far, [seeds, steps]."""
    run = ms.simulate(algorithm, problem(every), world(), steps=steps, seeds=seeds)
    return run.average_regret


def replayed(algorithm: Algorithm) -> ms.Run:
    """The log, once through."""
    stream = ms.streams.log("open_bandit")
    return ms.simulate(algorithm, replay(), stream, steps=stream.steps)


@functools.cache
def replay():
    """Eighty items; 45 global features, 41 local ones."""
    return ms.problems.replay(ms.problems.personal(45, 41, intercept=True), actions=80)


def main(folder: Path = Path("runs/bandits")) -> None:
    """Print both tables, and draw the regret of the longest run."""
    folder.mkdir(parents=True, exist_ok=True)
    tried = {
        name: {s: regret(build(s), SHORT, order(SHORT))[:, -1].mean() for s in SCALES}
        for name, build in BUILD.items()
    }
    best = {name: min(found, key=found.get) for name, found in tried.items()}
    print(
        f"average regret at T = {SHORT}, B = {order(SHORT)} by AdaGrad's scale (the best is used)"
    )
    for name, found in tried.items():
        print(f"  {name:14}" + "".join(f"{s:>8}: {value:.4f}" for s, value in found.items()))
    last = {}
    for rule, every in (("B of the theorem", period), ("B = T^(1/4)", order)):
        print(f"{rule:18}" + "".join(f"{f'T={T}, B={every(T)}':>22}" for T in HORIZONS))
        for name, build in BUILD.items():
            cells = ""
            for steps in HORIZONS:
                last[name] = regret(build(best[name]), steps, every(steps))
                final = last[name][:, -1]
                cells += f"{final.mean():12.5f} ± {final.std(ddof=1) / len(final) ** 0.5:.5f}"
            print(f"  {name:16}{cells}")
    figures.curves(last, "average regret", log="x").savefig(folder / "bandit.png", dpi=150)
    print("Open Bandit log")
    for name, build in BUILD.items():
        run = replayed(build(0.1))
        told = run.value("reward")
        for kind in ("ips", "dr"):
            value = run.value(kind)
            beats = "beats" if value.low > told.high else "does not surely beat"
            print(f"  {name:12}{kind:>4} {value}: {beats} the log's {told}")
    print(f"figure in {folder}")


if __name__ == "__main__":
    main()
