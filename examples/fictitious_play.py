"""Why not fictitious play (Agarwal et al. 2020, Appendix C): three rules, one client, T = 20,000.

    python -m examples.fictitious_play

Server and client must both move from (1, 0) to (0, 1). SGD and ERM do; fictitious play remembers old
partners, and the two lock each other. The printed step eta = 1.0 diverges: 0.1 is taken, and 0.01
beside it. Fifty rollouts of each rule are one program.
"""

from pathlib import Path

import numpy as np

import mainstem as ms
from mainstem.base import Algorithm
from mainstem.papers import partners
from mainstem.report import figures

RULES: dict[str, Algorithm] = {
    "SGD, step 0.1": ms.fedres_sgd(step=0.1),
    "SGD, step 0.01": ms.fedres_sgd(step=0.01),
    "ERM (Algorithms 1, 2)": ms.fedres_erm(),
    "ERM (Algorithm 6)": ms.fedres_erm(simultaneous=True),
    "fictitious play": ms.fictitious_play(),
}


def outcome(rule: Algorithm, *, steps: int = 20000, seeds: int = 50) -> tuple[np.ndarray, ...]:
    """(average loss so far [seeds, steps], final w^g [seeds, 2]) of a rule."""
    size = {"steps": steps, "seeds": seeds, "dtype": "float64"}
    run = ms.simulate(rule, partners.problem(), partners.world(), **size)
    average = np.cumsum(run.loss, axis=1) / np.arange(1, steps + 1)
    return average, np.asarray(run.model)


def main(folder: Path = Path("runs/fictitious-play"), **size: int) -> dict[str, tuple]:
    """Print the average losses and the final global models, and draw the former."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: outcome(rule, **size) for name, rule in RULES.items()}
    print(f"{'':24}{'mean loss':>12}{'median':>12}{'median final w^g':>22}{'still away':>12}")
    for name, (average, model) in found.items():
        away = np.median(partners.distance(model))
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
