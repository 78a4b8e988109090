"""A client of a run that changes: learns until SIGTERM, or until it no longer takes part.

Each upload is written to a log before it is sent, so that a test can compare what was sent with what was merged.
"""

import signal
import sys
import time
from pathlib import Path

import numpy as np

import mainstem as ms
from mainstem.engines.federate.client import uplink as links
from mainstem.errors import MainstemError

PAUSE = 0.02  # seconds between two samples


def main(url: str, run: str, client: str, folder: str) -> None:
    log = Path(f"{folder}.sent").open("a")  # noqa: SIM115
    real = links.Uplink.send

    async def logged(self, step, data, *wanted):
        log.write(f"{step}\n")
        log.flush()
        return await real(self, step, data, *wanted)

    links.Uplink.send = logged
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    draw = np.random.default_rng(0)
    try:
        with ms.join(url, run=run, client=client, folder=folder, patient=True, wait=30) as learner:
            while True:
                x = draw.normal(size=2).astype(np.float32)
                learner.learn_one(x, float(x @ [1, -2]))
                time.sleep(PAUSE)
    except MainstemError as error:
        print(error, flush=True)
        if f"client {client!r}" not in str(error) and "this client" not in str(error):
            raise  # it was not removed, renamed or replaced


if __name__ == "__main__":
    main(*sys.argv[1:5])
