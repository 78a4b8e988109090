"""OpenML: from a data id over its description to the table."""

import json
from typing import Any

import numpy as np
import pytest

from mainstem.datasets.arff import Arff
from mainstem.datasets.openml import openml
from mainstem.errors import BadData, DataUnavailable

TABLE = b"@relation r\n@attribute x real\n@attribute class {a,b}\n@data\n1.5,a\n2,b\n"


def column(table: Arff) -> dict[str, np.ndarray]:
    return {"x": table.numbers[:, 0], "class": table.nominal["class"]}


def described(url: str) -> bytes:
    return json.dumps({"data_set_description": {"id": "7", "url": url}}).encode()


def test_the_described_file_is_read(web: Any) -> None:
    web.serve("/api/7", described(f"{web.url}/r.arff"))
    web.serve("/r.arff", TABLE)
    source = openml(7, column, api=f"{web.url}/api")
    assert source.where == "OpenML 7"
    assert source.read()["x"].tolist() == [1.5, 2.0]


@pytest.mark.parametrize("answer", [b"busy", b"{}", b"[]", b'{"data_set_description": null}'])
def test_a_description_without_a_file_is_refused(web: Any, answer: bytes) -> None:
    web.serve("/7", answer)
    with pytest.raises(BadData, match="names no file"):
        openml(7, column, api=web.url).read()


def test_a_description_cannot_lead_to_local_files(web: Any) -> None:
    web.serve("/7", described("file:///r.arff"))
    with pytest.raises(DataUnavailable, match="not an http"):
        openml(7, column, api=web.url).read()


def test_binary_instead_of_text_is_refused(web: Any) -> None:
    web.serve("/7", described(f"{web.url}/r.arff"))
    web.serve("/r.arff", b"PAR1\xff\xfe\x00")
    with pytest.raises(BadData, match="not a text file"):
        openml(7, column, api=web.url).read()
