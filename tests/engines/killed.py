"""A run that is meant to be killed: `python -m tests.engines.killed FOLDER`."""

import sys

import mainstem as ms


def world():
    algorithm = ms.ofediq(0.05, rate=0.3, levels=3, blocks=4)
    stream = ms.streams.digits(clients=40)
    return algorithm, ms.problems.softmax(64, 10), stream


def run(folder):
    return ms.simulate(
        *world(), steps=600, seed=5, folder=folder, checkpoint=0.0, chunk=50, measure=["average"]
    )


if __name__ == "__main__":
    run(sys.argv[1])
