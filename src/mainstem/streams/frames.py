"""Streams from data frames: pandas, Polars, Arrow, Hugging Face, and whatever else has Arrow's interface."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mainstem.errors import BadData, MainstemError, first_line
from mainstem.parts.missing import Missing
from mainstem.parts.scaling import Scale
from mainstem.streams.arrays import arrays
from mainstem.streams.columns import DROP, Reader, chosen, keys
from mainstem.streams.deal import Deal
from mainstem.streams.labels import Classes


def frame(
    table: Any,
    target: str,
    key: str | None = None,
    features: Sequence[str] | None = None,
    *,
    clients: int | None = None,
    deal: Deal | None = None,
    classes: Classes = False,
    missing: Missing | None = None,
    scale: Scale | None = None,
) -> arrays:
    """The rows of a data frame as the stream `arrays`; the columns are named as for `csv`.

    With a `key` the rows are dealt by key, in their order; else evenly to `clients`, unless `deal` is given.

    >>> import pandas as pd
    >>> sites = pd.DataFrame({"site": ["a", "b", "b"], "heat": [1, 3, 5], "state": ["on", "off", "on"]})
    >>> stream = frame(sites, target="state", key="site", classes=True)
    >>> stream.clients, stream.steps, stream.labels
    (2, 2, ('off', 'on'))
    """
    batch = as_arrow("frame", table)
    columns = chosen("frame", batch.schema, target, key, features)
    owners = keys("frame", batch, key, 0)
    reader = Reader("frame", batch, 0, owners)
    shown = [reader.numbers(name, gaps=missing is not None) for name in columns]
    return arrays(
        np.stack(shown, axis=1),
        reader.labels(target) if classes else reader.numbers(target, hint=DROP),
        clients,
        deal,
        None if key is None else owners,
        classes,
        missing,
        scale,
    )


def as_arrow(owner: str, table: Any) -> Any:
    """A data frame as a pyarrow table, without an index."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MainstemError(f"{owner}: needs pyarrow: pip install 'mainstem[lab]'") from None
    try:
        home = type(table).__module__.partition(".")[0]
        if home == "pandas":
            return pa.Table.from_pandas(table, preserve_index=False)
        if home == "datasets":  # Hugging Face
            return table.with_format("arrow")[:]
        return pa.table(table)
    except (TypeError, ValueError, pa.ArrowException) as error:
        wanted = "a data frame of pandas, Polars, Arrow or Hugging Face"
        raise BadData(f"{owner}: wants {wanted}: {first_line(error)}") from None
