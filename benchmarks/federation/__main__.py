"""`make bench-federation`: rounds, uploads a second, bytes on the socket, and a client between syncs.

All on one machine with a private NATS server: each hub is a process of its own, all clients are tasks of this one,
for every side alike. Sides that are compared take turns.
"""

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
