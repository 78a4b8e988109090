"""The streams of run documents, and the cases that a hub can run."""

from typing import Any

import numpy as np

from mainstem import experiment, streams
from mainstem.base import Stream
from tests.contract.cases import CASES

SYNCING = [  # cases that sync, and whose parts can be written in a run document
    name
    for name, case in CASES.items()
    if case.algorithm.sync.after(np.arange(1, 200)).any() and name != "fedogd schedule"
]


def stream_of(content: dict[str, Any]) -> Stream:
    """The stream of an experiment file, or that of an algorithm under contract, by its `case`."""
    if "case" in content:
        return CASES[content["case"]].world(content["federate"]["clients"]).stream
    return experiment.made("stream", streams, content["stream"])
