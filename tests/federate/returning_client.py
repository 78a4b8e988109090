"""A client process of the soak: joins, learns for a while, leaves, and comes back, until it is killed."""

import contextlib
import os
import random
import sys
import time
import tomllib
from pathlib import Path

import mainstem as ms
from mainstem.engines.federate.client.learner import Learner
from mainstem.errors import MainstemError, NotFinite
from mainstem.replay import samples_at
from tests.federate.worlds import stream_of


def joined(url: str, who: dict) -> Learner:
    """Joins, again and again while the server stands still."""
    while True:
        try:
            return ms.join(url, **who)
        except MainstemError as error:
            if "no connection" not in str(error) and "does not answer" not in str(error):
                raise
            time.sleep(1)


def main(file: str, url: str, client: str, folder: str, unit: str) -> None:
    content = tomllib.loads(Path(file).read_text())
    rules, draw = content["federate"], random.Random()
    given = samples_at(stream_of(content), 0, int(client), 1, 10**6, rules["dtype"])
    while True:
        secret = os.environ.get("MAINSTEM_CREDENTIALS")
        who = {"run": rules["run"], "client": client, "folder": folder, "credentials": secret}
        with joined(url, who) as learner:
            end = time.monotonic() + draw.uniform(3, 30)
            while time.monotonic() < end:
                sample = next(given)
                with contextlib.suppress(NotFinite):
                    learner.step_with(sample._replace(shown=float(unit) * sample.shown))
                time.sleep(draw.expovariate(100))
        time.sleep(draw.uniform(0, 3))


if __name__ == "__main__":
    main(*sys.argv[1:6])
