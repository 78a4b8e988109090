"""A client with the samples of a simulated one: `python -m tests.federate.replaying_client FILE URL CLIENT`.

FILE is an experiment file with [stream] beside [federate]. Every upload is written to a log
before it is sent, so that a test can compare what was sent with what was merged.
"""

import os
import sys
import tomllib
from pathlib import Path

import mainstem as ms
from mainstem.engines.federate.client import uplink as links
from mainstem.replay import samples_at
from tests.federate.worlds import stream_of


def main(file: str, url: str, client: str, folder: str) -> None:
    content = tomllib.loads(Path(file).read_text())
    rules = content["federate"]
    stream = stream_of(content)
    log = Path(f"{folder}.sent").open("a")  # noqa: SIM115  # beside the folder, whose disk may be full
    patient = rules.get("pace", "free") == "free"
    method = "send" if patient else "sync"
    real = getattr(links.Uplink, method)

    async def logged(self, step, data, *wanted):
        log.write(f"{step} {data.hex()[:64]}\n")
        log.flush()
        return await real(self, step, data, *wanted)

    setattr(links.Uplink, method, logged)
    secret = os.environ.get("MAINSTEM_CREDENTIALS")
    given = {"run": rules["run"], "client": client, "folder": folder, "credentials": secret}
    with ms.join(url, **given, patient=patient) as learner:
        k = learner.session.document.clients.index(client)
        rest = (learner.step + 1, rules["steps"], learner.session.document.rules.dtype)
        for sample in samples_at(stream, rules.get("seed", 0), k, *rest):
            learner.step_with(sample)
        (Path(folder) / "loss").write_text(repr(learner.loss))


if __name__ == "__main__":
    Path(sys.argv[4]).mkdir(parents=True, exist_ok=True)
    main(*sys.argv[1:5])
