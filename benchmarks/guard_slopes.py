"""Regret with the guard and without it, where nobody is faulty: `python -m benchmarks.guard_slopes`.

FedOMD in its paper's experiment, where regret grows like log T: the slope of regret against log T. FedOGD on real
data, where it grows like a power of T: the slope of log regret against log T.
"""

from collections.abc import Iterator

import numpy as np

import mainstem as ms
from mainstem.base import Algorithm, Problem, Stream
from mainstem.papers import kwon, mitra

SEEDS, STEPS, SITES = 10, 2000, 10
AT = np.unique(np.geomspace(100, STEPS, 10).astype(int))  # prefixes
REGRESSIONS = ("air_quality", "appliances_energy")


def regret(algorithm: Algorithm, problem: Problem, stream: Stream) -> np.ndarray:
    """Collective regret at each prefix, its mean over the seeds."""
    run = ms.simulate(algorithm, problem, stream, steps=STEPS, seeds=SEEDS, measure=["collective"])
    return np.atleast_2d(run.regret(list(AT)).values).mean(axis=0)


def slope(regrets: np.ndarray, power: bool) -> float:
    """Of regret against log T, or of log regret against log T."""
    return float(np.polyfit(np.log(AT), np.log(regrets) if power else regrets, 1)[0])


def experiments() -> Iterator[tuple[str, Algorithm, Problem, Stream, bool]]:
    """Name, algorithm, problem, stream, and whether regret is a power of T."""
    for period in (1, 5, 20):
        yield f"fedomd, tau = {period}", mitra.algorithm(period), *mitra.world(), False
    for name in REGRESSIONS:
        table = ms.datasets.load(name)
        problem = ms.problems.linear(table.features.shape[1])
        stream = ms.streams.dataset(name, SITES)
        yield f"fedogd, {name}", ms.fedogd(kwon.STEP), problem, stream, True


def main() -> None:
    """Prints a line for each experiment."""
    print(f"{'':24}{'slope':>8}{'guarded':>9}{'   regret at T':>15}{'guarded':>9}")
    for name, algorithm, problem, stream, power in experiments():
        found = [regret(it, problem, stream) for it in (algorithm, ms.guarded(algorithm))]
        slopes = [slope(each, power) for each in found]
        ends = "".join(f"{each[-1]:{width}.4g}" for each, width in zip(found, (15, 9), strict=True))
        print(f"{name:24}{slopes[0]:8.3f}{slopes[1]:9.3f}{ends}")


if __name__ == "__main__":
    main()
