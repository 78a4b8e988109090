"""FedOMD's experiment (Mitra et al. 2021, Section VII): how regret grows with T, tau and participation.

    python -m examples.fedomd_regret

Twenty clients on [-3, 3], a ~ N(2, 5), loss (x - a)^2 / 2 at even steps and (x + a)^2 / 2 at odd
ones, step 1 / t, fifty seeds as one program. Regret is collective (eq. (2)), for every prefix
against the best point *for that prefix*.
"""

from pathlib import Path

import numpy as np

import mainstem as ms
from mainstem import Run, parts, rules
from mainstem.report import figures

CLIENTS, LOW, HIGH, CURVATURE = 20, -3.0, 3.0, 1.0
PERIODS, HEARD, PERIOD = (1, 5, 20, 50), (20, 10, 5, 2), 20


def played(period: int, heard: int = CLIENTS, *, steps: int = 2000, seeds: int = 50) -> Run:
    """Runs with a sync every `period` steps at which `heard` speak."""
    algorithm = ms.fedomd(
        rules.fedomd_strongly_convex(CURVATURE),
        mirror=parts.euclidean(parts.box(LOW, HIGH)),
        sync=parts.every(period),
        participation=parts.everyone() if heard == CLIENTS else parts.exactly(heard),
    )
    problem = ms.problems.quadratic(dimension=1, low=LOW, high=HIGH)
    stream = ms.streams.alternating(CLIENTS)
    return ms.simulate(algorithm, problem, stream, steps=steps, seeds=seeds)


def regrets(run: Run) -> np.ndarray:
    """Collective regret [seeds, steps]."""
    return np.atleast_2d(run.regret("all").values)


def log_fit(curve: np.ndarray, first: int = 20) -> float:
    """R^2 of a + b log T on the prefixes from `first` on."""
    x, y = np.log(np.arange(first, len(curve) + 1)), curve[first - 1 :]
    b, a = np.polyfit(x, y, 1)
    return float(1 - np.sum((y - a - b * x) ** 2) / np.sum((y - y.mean()) ** 2))


def main(folder: Path = Path("runs/fedomd-regret")) -> None:
    """Print the table of both figures and save them."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = {f"tau = {period}": played(period) for period in PERIODS}
    left = {name: regrets(run) for name, run in runs.items()}
    right = {f"{heard} of {CLIENTS} heard": regrets(played(PERIOD, heard)) for heard in HEARD}
    print(f"{'':18}{'regret':>10}{'error':>8}{'R^2 of log fit':>16}{'Theorem 2':>12}{'holds':>8}")
    for name, values in (left | right).items():
        mean, error = values[:, -1].mean(), values[:, -1].std(ddof=1) / len(values) ** 0.5
        says = f"{'-':>12}{'-':>8}"
        if name in runs:
            every = np.arange(1, values.shape[1] + 1)
            bound = np.asarray(runs[name].bound(every).value)
            says = f"{bound[-1]:12.0f}{np.all(values <= bound)!s:>8}"
        print(f"{name:18}{mean:10.2f}{error:8.2f}{log_fit(values.mean(axis=0)):16.4f}{says}")
    for name, curves in (("left", left), ("right", right)):
        figures.curves(curves, "regret", log="x").savefig(folder / f"{name}.png", dpi=150)
    runs[f"tau = {PERIOD}"].plot(bound=True).savefig(folder / "bound.png", dpi=150)
    print(f"figures in {folder}")


if __name__ == "__main__":
    main()
