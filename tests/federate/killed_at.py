"""Runs a module, and kills its process at a named point.

python -m tests.federate.killed_at "hub after store:17" mainstem.cli hub run.toml: at the 17th time that it is
reached.
"""

import os
import runpy
import signal
import sys

from mainstem.engines.federate import faults


def main():
    point, _, time = sys.argv[1].rpartition(":")
    reached = 0

    def reach(here):
        nonlocal reached
        reached += here == point
        if here == point and reached == int(time):
            os.kill(os.getpid(), signal.SIGKILL)

    faults.reach = reach
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
