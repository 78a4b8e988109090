"""Dynamic FedAvg (Rizk et al. 2020, Section IV): what the step, the drift and the epochs do to the MSD.

    python -m examples.dynamic_fedavg

Twenty agents of which 7 are heard, logistic risk with rho = 1, E_k in [1, 10], B_k in [10, 20] of 100
fresh samples, w_0 = 0. Deviations are from the minimiser of the population risk at each step, in dB,
averaged over fifty seeds that run as one program. With drift the figures depend on the horizon, since
labels are signs and the line turns ever more slowly as it walks away: T = 1,000 here.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import mainstem as ms
from mainstem import parts
from mainstem.base import Drawn, Stream
from mainstem.measure.tracking import Tracking, tracking
from mainstem.papers.rizk import AGENTS, BATCH, EPOCHS, HEARD, RHO, problem, world
from mainstem.report import figures
from mainstem.streams.walking import Agents, least_risk

STEPS, SEEDS = 1000, 50
STILL = (0.01, 0.1, 0.3)
TRACKED = (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.6)


def msd(step: float, stream: Stream, rho: float = RHO, *, steps: int = STEPS, seeds: int = SEEDS):
    """The MSD curve in dB of one step size."""
    algorithm = ms.dynamic_fedavg(
        step, epochs=EPOCHS, batch=BATCH, participation=parts.exactly(HEARD)
    )
    chosen = {"steps": steps, "seeds": seeds, "measure": ["deviation"]}
    return ms.simulate(algorithm, problem(rho), stream, **chosen).msd


def settled(curve: np.ndarray) -> float:
    """The level of the last tenth, in dB."""
    return float(10 * np.log10(np.mean(10 ** (curve[-len(curve) // 10 :] / 10))))


def arrival(curve: np.ndarray) -> int:
    """The first step within 3 dB of the level."""
    return int(np.argmax(curve < settled(curve) + 3))


def estimate(stream: Stream, rho: float = RHO) -> Tracking:
    """The terms of (28), measured where the levels are, in the last tenth."""
    return tracking(
        problem(rho),
        stream,
        heard=HEARD,
        epochs=EPOCHS,
        batch=BATCH,
        first=9 * STEPS // 10,
        horizon=STEPS,
        looks=30,
        seeds=SEEDS,
    )


def opposed() -> Stream:
    """No drift; agents with many epochs have one line, those with few another."""
    stream = world(drift=0.0)

    def drawn(seed: int) -> Drawn:
        agents = stream.drawn(seed).each
        turned = np.where(EPOCHS[:, None] > 5, [[2.0, 0.0]], [[0.0, 2.0]])
        return Drawn(each=Agents(turned, agents.scales))

    def chunk(seed: int, first: int, last: int) -> np.ndarray:
        return np.zeros((last - first + 1, AGENTS, 2, 2))

    return stream._replace(drawn=drawn, chunk=chunk)


def bias(normalised: bool, *, steps: int = STEPS, seeds: int = SEEDS) -> tuple[float, float]:
    """Distances of the mean final model from the minimiser, and from the epoch-weighted one."""
    stream = opposed()
    algorithm = ms.dynamic_fedavg(
        0.01,
        epochs=EPOCHS,
        batch=BATCH,
        participation=parts.exactly(HEARD),
        normalised=normalised,
    )
    run = ms.simulate(algorithm, problem(), stream, steps=steps, seeds=seeds)
    plain, weighted = [], []
    with jax.enable_x64(True):
        for seed in run.summary.seeds:
            agents = stream.drawn(seed).each
            plain.append(least_risk(jnp.asarray(agents.offsets), jnp.asarray(agents.scales), 2.0))
            heavy = jnp.repeat(jnp.arange(AGENTS), EPOCHS)
            lines, scales = jnp.asarray(agents.offsets)[heavy], jnp.asarray(agents.scales)[heavy]
            weighted.append(least_risk(lines, scales, 2.0))
    models = np.asarray(run.model)
    return tuple(
        float(np.linalg.norm(np.mean(models - np.array(best), axis=0)))
        for best in (plain, weighted)
    )


def main(folder: Path = Path("runs/dynamic-fedavg"), **size: int) -> dict[str, object]:
    """Print the three tables and save the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    still = {step: msd(step, world(0.0), **size) for step in STILL}
    print("no drift              step    level dB   within 3 dB of it after")
    for step, curve in still.items():
        print(f"{step:26}{settled(curve):12.2f}{arrival(curve):18} steps")
    moving = {step: msd(step, world(0.01), **size) for step in TRACKED}
    floors = {step: settled(curve) for step, curve in moving.items()}
    terms = estimate(world(0.01))
    print("drift 0.01            step    level dB   predicted dB")
    for step, level in floors.items():
        print(f"{step:26}{level:12.2f}{10 * np.log10(terms.floor(step)):15.2f}")
    best = min(floors, key=floors.get)
    print(f"best of these {best}, from the measured terms of (28) {terms.best_step:.3f}")
    print(
        f"  sigma_s^2 {terms.noise:.2e}, epsilon^2 {terms.disagreement:.2e}, sigma_q^2 {terms.drift:.2e}"
    )
    low = {
        step: settled(msd(step, world(0.01, rho=0.1), 0.1, **size)) for step in (0.1, 0.3, 1.0, 3.0)
    }
    print("the same with rho = 0.1: " + ", ".join(f"{s}: {v:.2f}" for s, v in low.items()))
    found = {normalised: bias(normalised, **size) for normalised in (True, False)}
    print("distance of the limit from   the minimiser   the epoch-weighted one")
    for normalised, (plain, weighted) in found.items():
        name = "with 1/E_k" if normalised else "without"
        print(f"{name:26}{plain:16.4f}{weighted:24.4f}")
    curves = {f"step {step}": np.atleast_2d(curve) for step, curve in still.items()}
    figures.curves(curves, "MSD (dB), no drift").savefig(folder / "dynamic_fedavg.png", dpi=150)
    curves = {f"step {step}": np.atleast_2d(curve) for step, curve in moving.items()}
    figures.curves(curves, "MSD (dB), drift 0.01").savefig(folder / "dynamic_drift.png", dpi=150)
    print(f"figures in {folder}")
    return {"still": still, "floors": floors, "terms": terms, "bias": found}


if __name__ == "__main__":
    main()
