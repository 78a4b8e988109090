"""The model of a run as a file: safetensors, with the names of features and labels."""

import json
from pathlib import Path

import jax
import numpy as np
import safetensors
import safetensors.numpy

from mainstem.disk import PRIVATE, write
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.engines.federate.protocol.state_format import unpack
from mainstem.errors import BadData

MODEL = "model.safetensors"


def write_model(folder: Path, aggregator: Aggregator) -> Path:
    """Writes the present model. Its tensors have the names that they have in the problem."""
    document = aggregator.document
    rules = document.rules
    named = {"features": rules.features, "labels": rules.labels}
    about = {"run": rules.run, "merge": str(aggregator.version), "step": str(aggregator.step)}
    about |= {name: json.dumps(given) for name, given in named.items() if given is not None}
    about["problem"] = json.dumps(document.content["problem"])
    data = safetensors.numpy.save(tensors(document, aggregator.model), about)
    return write(folder / MODEL, data, PRIVATE)


def tensors(document: RunDocument, vector: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a model, by name: the whole model, or its shared part."""
    with document.precision():
        model = document.problem.unravel_shared(vector)
    leaves = jax.tree_util.tree_leaves_with_path(model)
    names = (jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves)
    return {
        name or "model": np.asarray(leaf) for name, (_, leaf) in zip(names, leaves, strict=True)
    }


def read_model(path: Path, document: RunDocument) -> np.ndarray:
    """The model in a file of `write_model` or of a checkpoint, as a vector of the run's size."""
    if path.suffix == ".state":
        found = unpack(path.read_bytes(), str(path)).arrays.get("model", np.zeros(0))
        if found.size != document.broadcast:
            raise BadData(
                f"{path}: has {found.size} numbers, the run's model has {document.broadcast}"
            )
        return found
    try:
        named = safetensors.numpy.load(path.read_bytes())
    except safetensors.SafetensorError as error:
        raise BadData(f"{path}: is not a model: {error}") from None
    wanted = tensors(document, np.zeros(document.broadcast, document.dtype))
    shapes = {name: each.shape for name, each in wanted.items()}
    if {name: each.shape for name, each in named.items()} != shapes:
        raise BadData(f"{path}: has other tensors than the run's model, {shapes}")
    return np.concatenate([named[name].ravel() for name in wanted])
