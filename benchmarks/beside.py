"""Speed of this tree relative to another commit: `python -m benchmarks.beside COMMIT`.

Both sides are processes that take turns, call by call, so that a busy machine slows both. For each workload:
the median over the rounds of (this tree's time / the other's in the same round), and the middle half of these
ratios. The workloads are this tree's; each side uses its own package.
"""

import contextlib
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles

ROUNDS, SERVE = 31, "--serve"
HERE = Path(__file__).parents[1]


def workloads() -> dict[str, Callable[[], Callable[[], object]]]:
    """The workloads by name: each returns the function to time."""
    from benchmarks import workloads as w

    return {
        "FedOMD, T = 100,000": lambda: w.fedomd().run("fedomd"),
        "FedOMD, 50 seeds, T = 2,000": lambda: w.fedomd().run("fedomd", steps=2000, seeds=50),
        "FedOMD, 1 seed, T = 2,000": lambda: w.fedomd().run("fedomd", steps=2000),
        "FedOGD, MLP": lambda: w.mlp().run("fedogd"),
        "OFedIQ, MLP": lambda: w.mlp().run("ofediq"),
        "FedOGD, CNN": lambda: w.cnn().run("fedogd"),
        "OFedIQ, CNN": lambda: w.cnn().run("ofediq"),
        "FedOGD, 20 steps x 10 seeds": w.grid,
        "FedRes.SGD, 50 rollouts": lambda: w.fedres().run("fedres", seeds=50),
    }


def serve() -> None:
    """Runs in a side's process: a line with a name prepares that workload, every line calls it and prints the
    seconds."""
    found, action = workloads(), None
    for line in sys.stdin:
        name = line.strip()
        action = found[name]() if name else action
        assert action is not None
        begin = time.perf_counter()
        try:
            action()
        except AttributeError as error:  # this commit does not have it
            print(error, file=sys.stderr)
            begin = math.nan
        print(time.perf_counter() - begin, flush=True)


class Side:
    """A process that calls workloads on request."""

    def __init__(self, source: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.beside", SERVE],
            cwd=HERE,
            env=os.environ | {"PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, name: str = "") -> float:
        """The seconds of one call; a name selects another workload."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(name, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("a side has ended: see above")
        return float(answer)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The tree of a commit, in a temporary worktree."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def main(commit: str, *names: str) -> None:
    """Prints the table."""
    for name in names:
        if name not in workloads():
            raise SystemExit(
                f"no workload {name!r}; there are: {', '.join(map(repr, workloads()))}"
            )
    print(
        f"{'time of this tree / time of ' + commit[:10]:34}{'median':>8}   middle half   (first call)"
    )
    with checked_out(commit) as tree:
        sides = Side(HERE / "src"), Side(tree / "src")
        try:
            for name in names or workloads():
                first = [each.seconds(name) for each in sides]
                if not all(map(math.isfinite, first)):
                    continue
                found = [_round(n, *sides) for n in range(ROUNDS)]
                low, _, high = quantiles(found, n=4)
                compiled = first[0] / first[1]
                print(
                    f"{name:34}{median(found):8.3f}   {low:.3f}-{high:.3f}   ({compiled:.2f})",
                    flush=True,
                )
        finally:
            for each in sides:
                each.close()


def _round(n: int, ours: Side, theirs: Side) -> float:
    if n % 2:
        other = theirs.seconds()
        return ours.seconds() / other
    return ours.seconds() / theirs.seconds()


if __name__ == "__main__":
    serve() if sys.argv[1:] == [SERVE] else main(*sys.argv[1:])
