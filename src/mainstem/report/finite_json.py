"""JSON in which a number that is not finite is null: JSON has no other."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def dumps(content: Any, indent: int | None = None) -> str:
    """The content as JSON.

    >>> dumps({"loss": [0.5, float("nan")], "seed": np.int64(3)})
    '{"loss": [0.5, null], "seed": 3}'
    """
    return json.dumps(_plain(content), indent=indent, allow_nan=False)


def _plain(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, np.generic):
        content = content.item()
    return None if isinstance(content, float) and not math.isfinite(content) else content
