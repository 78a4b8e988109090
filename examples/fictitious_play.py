"""Why not fictitious play (Agarwal et al. 2020, Appendix C): three rules, one client, T = 20,000.

    python -m examples.fictitious_play

Server and client must both move from (1, 0) to (0, 1). SGD and ERM do; fictitious play remembers old
partners, and the two lock each other. The printed step eta = 1.0 diverges: 0.1 is taken, and 0.01
beside it. Fifty rollouts of each rule are one program.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

import mainstem as ms
from mainstem import random
from mainstem.base import Algorithm, Stream
from mainstem.report import figures

START = ([1.0, 0.0], [1.0, 0.0])
BEST = np.array([0.0, 1.0])


def world() -> Stream:
    """Section C.1: x^g = (a + e, b), x^l = (1 - a, 1 - b), y = 1, e of variance 0.25."""

    def sample(key, t, k):
        a, b, e = random.normal(key, (3,))
        return (jnp.stack([a + 0.5 * e, b]), jnp.stack([1 - a, 1 - b])), jnp.ones(())

    return ms.streams.generated(sample, clients=1)


RULES: dict[str, Algorithm] = {
    "SGD, step 0.1": ms.fedres_sgd(step=0.1),
    "SGD, step 0.01": ms.fedres_sgd(step=0.01),
    "ERM (Algorithms 1, 2)": ms.fedres_erm(),
    "ERM (Algorithm 6)": ms.fedres_erm(simultaneous=True),
    "fictitious play": ms.fictitious_play(),
}


def outcome(rule: Algorithm, *, steps: int = 20000, seeds: int = 50) -> tuple[np.ndarray, ...]:
    """(average loss so far [seeds, steps], final w^g [seeds, 2]) of a rule."""
    problem = ms.problems.personal(shared=2, own=2, start=START)
    run = ms.simulate(rule, problem, world(), steps=steps, seeds=seeds, dtype="float64")
    average = np.cumsum(run.loss, axis=1) / np.arange(1, steps + 1)
    return average, np.asarray(run.model)


def main(folder: Path = Path("runs/fictitious-play"), **size: int) -> dict[str, tuple]:
    """Print the average losses and the final global models, and draw the former."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: outcome(rule, **size) for name, rule in RULES.items()}
    print(f"{'':24}{'mean loss':>12}{'median':>12}{'median final w^g':>22}{'still away':>12}")
    for name, (average, model) in found.items():
        away = np.median(np.linalg.norm(model - BEST, axis=1))
        middle = np.median(model, axis=0)
        where = f"({middle[0]:.4f}, {middle[1]:.4f})"
        mean, median = average[:, -1].mean(), np.median(average[:, -1])
        print(f"{name:24}{mean:12.6f}{median:12.6f}{where:>22}{away:12.2e}")
    curves = {name: np.median(average, axis=0)[None] for name, (average, _) in found.items()}
    figures.curves(curves, "average loss, median of the rollouts", log="xy").savefig(
        folder / "fictitious_play.png", dpi=150
    )
    print(f"figure in {folder}")
    return found


if __name__ == "__main__":
    main()
