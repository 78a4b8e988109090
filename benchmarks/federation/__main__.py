"""Federation benchmark (`make bench-federation`): rounds, uploads, bytes, samples of a client, floods.

Everything runs on one machine with a private NATS server: each hub is a separate process, all clients are tasks
of this one, for every side alike. Sides that are compared take turns.
"""

import sys

from benchmarks.federation import between, floods, free, rounds, traffic

BENCHMARKS = {
    "rounds": rounds.main,
    "free": free.main,
    "traffic": traffic.main,
    "between": between.main,
    "floods": floods.main,
}


def main() -> None:
    """Runs the benchmarks named on the command line, or all."""
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
