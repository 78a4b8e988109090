"""`make bench`: how fast the simulator is, as ratios of medians against peers in the same run.

The machine is shared and noisy, so each round measures every side once, turn by turn, and the
medians of five rounds are compared. Compile time is measured apart. A peer is given in the form one
writes down and, where a better one is known, in a tuned form too.
"""

import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import mainstem as ms
from benchmarks import fedres, memory
from benchmarks.peers import numpy_fedomd, torch_cnn, torch_mlp
from mainstem import parts
from mainstem.base import Algorithm

ROUNDS = 5
Sides = dict[str, Callable[[], object]]


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def medians(sides: Sides) -> tuple[dict[str, float], dict[str, float]]:
    """(first call, median of the rounds) of every side, measured in turn."""
    first = {name: seconds(action) for name, action in sides.items()}
    rounds = [{name: seconds(action) for name, action in sides.items()} for _ in range(ROUNDS)]
    return first, {name: median(each[name] for each in rounds) for name in sides}


def compare(title: str, sides: Sides, steps: int, goals: dict[str, str]) -> None:
    """Print the first side's time, and how many times longer each other one takes."""
    first, found = medians(sides)
    ours, *others = sides
    print(f"\n{title}")
    compiled = max(0.0, first[ours] - found[ours])
    print(f"  {ours:44}{1e3 * found[ours] / steps:10.4f} ms/step   (compiled in {compiled:.1f} s)")
    for name in others:
        ratio = found[name] / found[ours]
        goal = f"   (asked: {goals[name]})" if name in goals else ""
        print(f"  {name:44}{1e3 * found[name] / steps:10.4f} ms/step   ratio {ratio:6.2f}{goal}")


def fedomd_experiment() -> None:
    """FedOMD's experiment at T = 100,000, and fifty seeds of it."""
    algorithm = ms.fedomd(
        parts.inverse_time(2.0), mirror=parts.euclidean(parts.box(-3, 3)), sync=parts.every(20)
    )
    problem, stream = ms.problems.quadratic(low=-3, high=3), ms.streams.alternating(20)

    def ours(steps: int, **seeds: object) -> object:
        return ms.simulate(algorithm, problem, stream, steps=steps, **seeds)  # type: ignore[arg-type]

    steps = 100_000
    sides: Sides = {
        "mainstem": lambda: ours(steps),
        "NumPy loop, vectorised over clients": lambda: numpy_fedomd.plain(steps),
        "the same, tuned by hand": lambda: numpy_fedomd.run(steps),
    }
    goals = {"NumPy loop, vectorised over clients": "at least 30"}
    compare("FedOMD's experiment, 20 clients, T = 100,000", sides, steps, goals)
    sides = {
        "mainstem, fifty seeds as one program": lambda: ours(2000, seeds=50),
        "mainstem, fifty runs": lambda: [ours(2000, seed=n) for n in range(50)],
    }
    compare("FedOMD's experiment, fifty seeds, T = 2,000", sides, 2000, {})


def mlp() -> None:
    """The 4,609-parameter perceptron at 1,000 clients."""
    steps, clients = 100, 1000
    draw = np.random.default_rng(0)
    features = draw.uniform(size=(9000, 5)).astype(np.float32)
    target = draw.uniform(size=9000).astype(np.float32)
    problem, stream = ms.problems.mlp(5), ms.streams.arrays(features, target, clients)
    plan = ms.plan(0.01, problem.size)
    chosen = {"rate": plan.rate, "levels": plan.levels, "blocks": plan.blocks}
    fedogd, ofediq = ms.fedogd(0.01), ms.ofediq(0.01, **chosen)
    indices = stream.chunk(0, 1, steps).astype(np.int64)
    data = features, target, indices, 0.01

    def ours(algorithm: Algorithm) -> object:
        return ms.simulate(algorithm, problem, stream, steps=steps)

    sides: Sides = {
        "mainstem": lambda: ours(fedogd),
        "eager PyTorch": lambda: torch_mlp.fedogd(*data),
    }
    goals = {"eager PyTorch": "at least 1.3"}
    compare("FedOGD, MLP of 4,609 parameters, 1,000 clients", sides, steps, goals)
    planned = plan.rate, plan.levels, plan.blocks, 0
    sides = {
        "mainstem": lambda: ours(ofediq),
        "torch.func.vmap": lambda: torch_mlp.ofediq(*data, *planned),
        "PyTorch, gradients by hand": lambda: torch_mlp.ofediq(
            *data, *planned, gradients=torch_mlp.outer
        ),
        "mainstem, FedOGD": lambda: ours(fedogd),
    }
    goals = {"torch.func.vmap": "at least 2.2", "mainstem, FedOGD": "at least 0.25"}
    compare("OFedIQ planned for 1 %, the same MLP", sides, steps, goals)


def cnn(steps: int = 3) -> None:
    """The 34,826-parameter convolutional network at 1,000 clients."""
    draw = np.random.default_rng(0)
    images = draw.uniform(size=(5000, 28, 28)).astype(np.float32)
    labels = draw.integers(0, 10, 5000).astype(np.int32)
    problem, stream = ms.problems.cnn(), ms.streams.arrays(images, labels, 1000)
    plan = ms.plan(0.01, problem.size)
    chosen = {"rate": plan.rate, "levels": plan.levels, "blocks": plan.blocks}
    fedogd, ofediq = ms.fedogd(0.01), ms.ofediq(0.01, **chosen)
    data = images, labels, stream.chunk(0, 1, steps).astype(np.int64), 0.01
    natural = {"layout": torch_cnn.as_it_is}

    def ours(algorithm: Algorithm) -> object:
        return ms.simulate(algorithm, problem, stream, steps=steps)

    sides: Sides = {
        "mainstem": lambda: ours(fedogd),
        "eager PyTorch": lambda: torch_cnn.fedogd(*data, **natural),
        "eager PyTorch, channels last": lambda: torch_cnn.fedogd(*data),
    }
    goals = {"eager PyTorch": "at least 1.0"}
    compare("FedOGD, CNN of 34,826 parameters, 1,000 clients", sides, steps, goals)
    planned = plan.rate, plan.levels, plan.blocks, 0
    sides = {
        "mainstem": lambda: ours(ofediq),
        "torch.func.vmap": lambda: torch_cnn.ofediq(
            *data, *planned, gradients=torch_cnn.vmapped_as_it_is, **natural
        ),
        "torch.func.vmap, channels last": lambda: torch_cnn.ofediq(*data, *planned),
        "PyTorch, gradients by hand": lambda: torch_cnn.ofediq(
            *data, *planned, gradients=torch_cnn.unfolded
        ),
    }
    goals = {"torch.func.vmap": "at least 1.8"}
    compare("OFedIQ planned for 1 %, the same CNN", sides, steps, goals)


BENCHMARKS = {
    "fedomd": fedomd_experiment,
    "mlp": mlp,
    "cnn": cnn,
    "fedres": fedres.main,
    "memory": memory.main,
}


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
