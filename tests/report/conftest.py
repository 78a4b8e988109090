"""A report of several runs."""

from pathlib import Path

import numpy as np
import pytest

import mainstem as ms

HOSTILE = (
    "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'>"
)


@pytest.fixture(scope="session")
def runs() -> dict[str, ms.Run]:
    """Three algorithms on a small stream; the label of one is hostile."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(300, 3))
    stream = ms.streams.arrays(
        rows, (rows[:, 0] + draw.normal(size=300) > 0).astype(int), clients=6
    )
    problem = ms.problems.logistic(features=3)
    chosen = {
        "FedOGD": ms.fedogd(0.1),
        "OFedAvg": ms.ofedavg(0.1, rate=0.5),
        HOSTILE: ms.fedomd(0.1, sync=ms.parts.every(5)),
    }
    return {
        label: ms.simulate(
            algorithm, problem, stream, steps=60, seeds=2, measure=["loss per client", "collective"]
        )
        for label, algorithm in chosen.items()
    }


@pytest.fixture(scope="session")
def report(runs: dict[str, ms.Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of these runs."""
    place = tmp_path_factory.mktemp("report") / "report.html"
    return ms.compare(runs).report(place, command="mainstem run three.toml")
