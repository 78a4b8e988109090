"""A federated run begins with the model of another one, and its own says what the hub knows."""

import numpy as np
import pytest
import safetensors.numpy

import mainstem as ms
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.model_file import write_model
from mainstem.engines.federate.hub.start_model import with_start
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.errors import BadData

CONTENT = {
    "problem": {"name": "linear", "features": 2},
    "algorithm": {"name": "fedogd", "step": 0.1},
    "federate": {"run": "load", "clients": ["oslo", "lima"], "seed": 5, "dtype": "float64"},
}


def beginning(path):
    rules = {**CONTENT["federate"], "start": path.name}
    return with_start(parse({**CONTENT, "federate": rules}), path.parent)


def test_the_file_of_a_hub_says_what_the_hub_knows(tmp_path):
    aggregator = Aggregator(parse(CONTENT))
    aggregator.begin_epoch(1, 1)
    about = ms.load_model(write_model(tmp_path, aggregator)).about
    assert about["problem"] == CONTENT["problem"]
    assert about["algorithm"] == CONTENT["algorithm"]
    assert (about["run"], about["merge"], about["step"]) == ("load", 0, 0)
    assert (about["dtype"], about["seed"]) == ("float64", 5)
    assert (
        "preprocessing" not in about
    )  # the sites prepare their rows, and the hub does not see how


def test_it_begins_with_a_model_of_scaled_rows(tmp_path):
    rows = np.random.default_rng(0).normal(50, 9, size=(20, 2))
    keys = ["lima", "oslo"] * 10
    stream = ms.streams.arrays(rows, rows[:, 0], keys=keys, scale=ms.parts.standardised())
    run = ms.simulate(ms.fedogd(0.1), ms.problems.linear(2), stream, steps=5, dtype="float64")
    found = beginning(run.export(tmp_path / "model.safetensors")).start
    np.testing.assert_array_equal(found, run.models["server"])


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (np.array([1.0, np.nan, 0.0]), "model is not finite"),
        (np.zeros(3, np.int64), "model has numbers of int64"),
        (np.zeros(4), r"model has the shape \(4,\)"),
    ],
)
def test_it_begins_with_no_other(model, why, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors.numpy.save({"model": model}))
    with pytest.raises(BadData, match=f"model.safetensors: is not the run's model: {why}"):
        beginning(path)
