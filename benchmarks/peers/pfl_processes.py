"""pfl-research in several processes on one device, each with a share of the users.

pfl 0.6 connects processes with NCCL, which takes one process a GPU. So these do not communicate: they are as fast
as processes that are connected could be at best.
"""

import contextlib
import multiprocessing


def fedavg(images, labels, rounds, batch, step, count):
    """A function that runs so many rounds, in `count` processes."""
    context = multiprocessing.get_context("spawn")
    ends = []
    for share in range(count):
        ours, theirs = context.Pipe()
        given = theirs, images[share::count], labels[share::count], rounds, batch, step
        name = "MainProcess"  # elsewhere pfl takes itself for a process that loads data
        context.Process(target=_work, args=given, name=name, daemon=True).start()
        theirs.close()  # a process that fails is noticed
        ends.append(ours)

    def run():
        for end in ends:
            end.send("go")
        for end in ends:
            end.recv()

    return run


def _work(end, *given):
    from benchmarks.peers import pfl_fedavg

    run = pfl_fedavg.fedavg(*given)
    with contextlib.suppress(EOFError):  # the benchmark has ended
        while True:
            end.recv()
            run()
            end.send("done")
