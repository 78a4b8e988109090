"""FedOMD's experiment (Mitra et al. 2021, Section VII): how regret grows with T, tau and participation.

    python -m examples.fedomd_regret

Twenty clients on [-3, 3], a ~ N(2, 5), loss (x - a)^2 / 2 at even steps and (x + a)^2 / 2 at odd
ones, step 1 / t, fifty seeds as one program. Regret is collective (eq. (2)), for every prefix
against the best point *for that prefix*.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import mainstem as ms
from mainstem import parts, random
from mainstem.base import At
from mainstem.report import figures

CLIENTS, LOW, HIGH, CURVATURE = 20, -3.0, 3.0, 1.0
SIGMA = 2 * CURVATURE  # Mitra et al.'s (9) in the euclidean map's convention
PERIODS, HEARD, PERIOD = (1, 5, 20, 50), (20, 10, 5, 2), 20


def regrets(period: int, heard: int = CLIENTS, *, steps: int = 2000, seeds: int = 50) -> np.ndarray:
    """Collective regret [seeds, steps] with a sync every `period` steps at which `heard` speak."""
    algorithm = ms.fedomd(
        parts.inverse_time(SIGMA),
        mirror=parts.euclidean(parts.box(LOW, HIGH)),
        sync=parts.every(period),
        participation=parts.everyone() if heard == CLIENTS else parts.exactly(heard),
    )
    problem = ms.problems.quadratic(dimension=1, low=LOW, high=HIGH)
    stream = ms.streams.alternating(CLIENTS)
    run = ms.simulate(algorithm, problem, stream, steps=steps, seeds=seeds)
    return np.atleast_2d(run.regret("all").values)


def steepest(*, steps: int = 2000, seeds: int = 50) -> np.ndarray:
    """L for each seed: the largest gradient that any of its losses has on [-3, 3]."""
    stream = ms.streams.alternating(CLIENTS)

    def target(key: jax.Array, t: jax.Array, k: jax.Array) -> jax.Array:
        at = At(t, k, random.fold(key, random.STREAM, t, k))
        return stream.sample((), (), at).hidden[0]

    over = jax.vmap(jax.vmap(target, (None, None, 0)), (None, 0, None))
    ts, ks = jnp.arange(1, steps + 1), jnp.arange(CLIENTS)
    largest = jax.jit(lambda key: jnp.max(jnp.abs(over(key, ts, ks))))
    return np.array([HIGH + float(largest(random.root(seed))) for seed in range(seeds)])


def bound(period: int, lipschitz: np.ndarray, steps: int) -> np.ndarray:
    """Theorem 2: 17 L^2 tau (1 + log T) / sigma, for every prefix T."""
    prefixes = np.arange(1, steps + 1)
    return 17 * lipschitz[:, None] ** 2 * period * (1 + np.log(prefixes)) / SIGMA


def log_fit(curve: np.ndarray, first: int = 20) -> float:
    """R^2 of a + b log T on the prefixes from `first` on."""
    x, y = np.log(np.arange(first, len(curve) + 1)), curve[first - 1 :]
    b, a = np.polyfit(x, y, 1)
    return float(1 - np.sum((y - a - b * x) ** 2) / np.sum((y - y.mean()) ** 2))


def main(folder: Path = Path("runs/fedomd-regret")) -> None:
    """Print the table of both figures and save them."""
    folder.mkdir(parents=True, exist_ok=True)
    lipschitz = steepest()
    left = {f"tau = {period}": regrets(period) for period in PERIODS}
    right = {f"{heard} of {CLIENTS} heard": regrets(PERIOD, heard) for heard in HEARD}
    print(f"{'':18}{'regret':>10}{'error':>8}{'R^2 of log fit':>16}{'below Theorem 2':>17}")
    for name, values in (left | right).items():
        mean, error = values[:, -1].mean(), values[:, -1].std(ddof=1) / len(values) ** 0.5
        holds = "-"
        if name in left:
            period = PERIODS[list(left).index(name)]
            holds = str(bool(np.all(values <= bound(period, lipschitz, values.shape[1]))))
        print(f"{name:18}{mean:10.2f}{error:8.2f}{log_fit(values.mean(axis=0)):16.4f}{holds:>17}")
    for name, curves in (("left", left), ("right", right)):
        figures.curves(curves, "regret", log="x").savefig(folder / f"{name}.png", dpi=150)
    print(f"figures in {folder}")


if __name__ == "__main__":
    main()
