"""Simulator benchmark (`make bench`): speed as ratios of medians against peers in the same run.

The machine is shared and noisy, so each round measures every side once, turn by turn, and the
medians of five rounds are compared. Compile time is measured separately. A peer is given in its
straightforward form and, where a faster one is known, also in a tuned form.
"""

import sys
import time
from collections.abc import Callable
from statistics import median

from benchmarks import fedres, memory, parquet, workloads
from benchmarks.peers import numpy_fedomd, torch_cnn, torch_mlp

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
    """Prints the first side's time, and how many times longer each other one takes."""
    first, found = medians(sides)
    ours, *others = sides
    print(f"\n{title}")
    compiled = max(0.0, first[ours] - found[ours])
    print(f"  {ours:44}{1e3 * found[ours] / steps:10.4f} ms/step   (compiled in {compiled:.1f} s)")
    for name in others:
        ratio = found[name] / found[ours]
        goal = f"   (asked: {goals[name]})" if name in goals else ""
        print(f"  {name:44}{1e3 * found[name] / steps:10.4f} ms/step   ratio {ratio:6.2f}{goal}")


def fedomd() -> None:
    """FedOMD's experiment at T = 100,000, and fifty seeds of it."""
    work = workloads.fedomd()
    sides: Sides = {
        "mainstem": work.run("fedomd"),
        "NumPy loop, vectorised over clients": lambda: numpy_fedomd.plain(work.steps),
        "the same, tuned by hand": lambda: numpy_fedomd.run(work.steps),
    }
    goals = {"NumPy loop, vectorised over clients": "at least 30"}
    compare("FedOMD's experiment, 20 clients, T = 100,000", sides, work.steps, goals)
    single = [work.run("fedomd", steps=2000, seed=n) for n in range(50)]
    sides = {
        "mainstem, fifty seeds as one program": work.run("fedomd", steps=2000, seeds=50),
        "mainstem, fifty runs": lambda: [each() for each in single],
    }
    compare("FedOMD's experiment, fifty seeds, T = 2,000", sides, 2000, {})


def mlp() -> None:
    """The 4,609-parameter perceptron at 1,000 clients."""
    work = workloads.mlp()
    sides: Sides = {
        "mainstem": work.run("fedogd"),
        "eager PyTorch": lambda: torch_mlp.fedogd(*work.data),
    }
    goals = {"eager PyTorch": "at least 1.3"}
    compare("FedOGD, MLP of 4,609 parameters, 1,000 clients", sides, work.steps, goals)
    planned = work.plan.rate, work.plan.levels, work.plan.blocks, 0
    sides = {
        "mainstem": work.run("ofediq"),
        "torch.func.vmap": lambda: torch_mlp.ofediq(*work.data, *planned),
        "PyTorch, gradients by hand": lambda: torch_mlp.ofediq(
            *work.data, *planned, gradients=torch_mlp.outer
        ),
        "mainstem, FedOGD": work.run("fedogd"),
    }
    goals = {"torch.func.vmap": "at least 2.2", "mainstem, FedOGD": "at least 0.25"}
    compare("OFedIQ planned for 1 %, the same MLP", sides, work.steps, goals)


def cnn() -> None:
    """The 34,826-parameter convolutional network at 1,000 clients."""
    work = workloads.cnn()
    natural = {"layout": torch_cnn.as_it_is}
    sides: Sides = {
        "mainstem": work.run("fedogd"),
        "eager PyTorch": lambda: torch_cnn.fedogd(*work.data, **natural),
        "eager PyTorch, channels last": lambda: torch_cnn.fedogd(*work.data),
    }
    goals = {"eager PyTorch": "at least 1.0"}
    compare("FedOGD, CNN of 34,826 parameters, 1,000 clients", sides, work.steps, goals)
    planned = work.plan.rate, work.plan.levels, work.plan.blocks, 0
    sides = {
        "mainstem": work.run("ofediq"),
        "torch.func.vmap": lambda: torch_cnn.ofediq(
            *work.data, *planned, gradients=torch_cnn.vmapped_as_it_is, **natural
        ),
        "torch.func.vmap, channels last": lambda: torch_cnn.ofediq(*work.data, *planned),
        "PyTorch, gradients by hand": lambda: torch_cnn.ofediq(
            *work.data, *planned, gradients=torch_cnn.unfolded
        ),
    }
    goals = {"torch.func.vmap": "at least 1.8"}
    compare("OFedIQ planned for 1 %, the same CNN", sides, work.steps, goals)


BENCHMARKS = {
    "fedomd": fedomd,
    "mlp": mlp,
    "cnn": cnn,
    "fedres": fedres.main,
    "memory": memory.main,
    "parquet": parquet.main,
}


def main() -> None:
    """Runs the benchmarks named on the command line, or all."""
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
