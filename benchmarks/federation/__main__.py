"""`make bench-federation [names]`: each part once, in one run."""

import sys

from benchmarks.federation import rounds

BENCHMARKS = {"rounds": rounds.main}


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
