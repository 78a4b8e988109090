"""OpenML: a data id gives a JSON description, which gives the address of an ARFF file."""

import json
from collections.abc import Callable

from mainstem.datasets.arff import Arff, parse
from mainstem.datasets.named_arrays import Arrays
from mainstem.datasets.source import Source, download, text
from mainstem.errors import BadData

API = "https://www.openml.org/api/v1/json/data"


def openml(data_id: int, convert: Callable[[Arff], Arrays], *, api: str = API) -> Source:
    """The source for the dataset of that id: its ARFF table, converted to the cached arrays."""

    def read() -> Arrays:
        described = download(f"{api}/{data_id}")
        return convert(parse(text(download(_address(described)))))

    return Source(f"OpenML {data_id}", read)


def _address(described: bytes) -> str:
    try:
        return str(json.loads(described)["data_set_description"]["url"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadData("OpenML's description of the data names no file") from error
