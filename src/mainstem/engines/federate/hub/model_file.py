"""The model of a federated run as a file."""

from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from mainstem.disk import PRIVATE
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.engines.federate.protocol.state_format import unpack
from mainstem.errors import BadData
from mainstem.run.model_file import checked, is_beside, save_model, tensors

MODEL = "model.safetensors"


def write_model(folder: Path, aggregator: Aggregator) -> Path:
    """Writes the present model; `ms.load_model` reads it."""
    document = aggregator.document
    rules = document.rules
    about = {"run": rules.run, "merge": aggregator.version, "step": aggregator.step}
    about |= {"features": rules.features, "labels": rules.labels}
    about |= {name: document.content[name] for name in ("problem", "algorithm")}
    about |= {"dtype": rules.dtype, "seed": rules.seed}
    return save_model(folder / MODEL, nested(document, aggregator.model), about, PRIVATE)


def nested(document: RunDocument, vector: np.ndarray) -> Any:
    """The model in the form of the problem: the whole model, or its shared part."""
    with document.precision():
        return document.problem.unravel_shared(vector)


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
    wanted = tensors(nested(document, np.zeros(document.broadcast, document.dtype)))
    named = {name: each for name, each in named.items() if not is_beside(name, wanted)}
    try:
        checked(named, {name: each.shape for name, each in wanted.items()})
    except BadData as error:
        raise BadData(f"{path}: is not the run's model: {error}") from None
    return np.concatenate([named[name].ravel() for name in wanted])
