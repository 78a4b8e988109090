"""CPU seconds of regret curves: `python -m benchmarks.regret [COMMIT]`, beside another commit in the same run.

Softmax on digits, 500 steps of 100 clients: one regret, 20 prefixes of it, and 20 prefixes of each of 10 seeds,
in a process of its own for each tree. The goal is at most 20 times one regret for the last.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.beside import HERE, checked_out

MEASURE = "--measure"
STEPS, AT = 500, range(25, 501, 25)


def measure() -> dict[str, float]:
    """CPU seconds of each workload, the compilation of its programs included; the simulations are not."""
    import mainstem as ms

    problem, stream = ms.problems.softmax(64, 10), ms.streams.digits(clients=100)
    one = ms.simulate(ms.fedogd(0.5), problem, stream, steps=STEPS)
    ten = ms.simulate(ms.fedogd(0.5), problem, stream, steps=STEPS, seeds=10)
    return {
        "one regret": seconds(one.regret),
        "20 prefixes": seconds(lambda: one.regret(list(AT))),
        "20 prefixes x 10 seeds": seconds(lambda: ten.regret(list(AT))),
    }


def seconds(action: Callable[[], object]) -> float:
    """CPU seconds of a call, of all threads."""
    begin = time.process_time()
    action()
    return time.process_time() - begin


def measured(source: Path) -> dict[str, float]:
    """The same in a process that uses the package in `source`."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.regret", MEASURE],
        cwd=HERE,
        env=os.environ | {"PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(commit: str | None = None) -> None:
    """Prints the table."""
    with contextlib.ExitStack() as stack:
        sides = {"this tree": HERE / "src"}
        if commit is not None:
            sides = {commit[:10]: stack.enter_context(checked_out(commit)) / "src"} | sides
        found = {name: measured(source) for name, source in sides.items()}
    print(f"{'CPU seconds':26}" + "".join(f"{name:>14}" for name in found))
    for work in found["this tree"]:
        print(f"{work:26}" + "".join(f"{each[work]:14.2f}" for each in found.values()))
    each = found["this tree"]
    ratio = each["20 prefixes x 10 seeds"] / each["one regret"]
    print(f"20 prefixes x 10 seeds of this tree: {ratio:.1f} times one regret (goal: at most 20)")


if __name__ == "__main__":
    print(json.dumps(measure())) if sys.argv[1:] == [MEASURE] else main(*sys.argv[1:])
