"""A client process that lives what its simulated twin lives: `python -m tests.federate.twin FILE URL CLIENT`.

FILE is an experiment file with [stream] beside [federate]. Every upload is written to a log
of its own before it is sent, so that a test can tell what was said from what was merged.
"""

import sys
import tomllib
from pathlib import Path

import mainstem as ms
from mainstem.engines.federate import link as links
from tests.federate.worlds import samples, stream_of


def main(file: str, url: str, client: str, folder: str) -> None:
    content = tomllib.loads(Path(file).read_text())
    rules = content["federate"]
    stream = stream_of(content)
    log = (Path(folder) / "sent.log").open("a")
    real = links.Link.agree

    async def logged(self, step, data):
        log.write(f"{step} {data.hex()[:64]}\n")
        log.flush()
        return await real(self, step, data)

    links.Link.agree = logged
    with ms.join(url, run=rules["run"], client=client, folder=folder) as learner:
        k = learner.charter.clients.index(client)
        rest = (learner.step + 1, rules["steps"], learner.charter.rules.dtype)
        for sample in samples(stream, rules.get("seed", 0), k, *rest):
            learner.step_with(sample)
        (Path(folder) / "loss").write_text(repr(learner.loss))


if __name__ == "__main__":
    Path(sys.argv[4]).mkdir(parents=True, exist_ok=True)
    main(*sys.argv[1:5])
