"""`make bench-federation [names]`: each part once, in one run."""

import sys

from benchmarks.federation import between, free, rounds, traffic

BENCHMARKS = {
    "rounds": rounds.main,
    "free": free.main,
    "traffic": traffic.main,
    "between": between.main,
}


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
