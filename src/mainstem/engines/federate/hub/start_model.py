"""The model that a run begins with: a file of another run, named by `start` in the table [federate].

Clients take it from the first broadcast. Their document has its checksum in the place of the file's name.
"""

import copy
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.engines.federate.hub.model_file import read_model
from mainstem.engines.federate.protocol.run_document import RunDocument, parse
from mainstem.errors import BadData, BadSpec

CHECKSUM = "sha256:"


def with_start(document: RunDocument, folder: Path) -> RunDocument:
    """The document with the model that it names, if it names one; its path may be relative to `folder`."""
    given = document.rules.start
    if given is None:
        return document
    path = folder / given
    if not path.is_file():
        raise BadSpec(f"{document.rules.run}: start: there is no file {path}")
    model = read_model(path, document).astype(document.dtype)
    if not np.isfinite(model).all():
        raise BadData(f"{path}: is not finite")
    content: dict[str, Any] = copy.deepcopy(dict(document.content))
    checksum = hashlib.sha256(model.tobytes()).hexdigest()
    content["federate"]["start"] = f"{CHECKSUM}{checksum[:32]}"
    return parse(content, document.rules.run)._replace(start=model)
