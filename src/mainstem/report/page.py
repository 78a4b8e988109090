"""Page: a report as one HTML file that needs no network, with its scripts, styles and data inside."""

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mainstem.disk import write
from mainstem.errors import BadData
from mainstem.report import finite_json

WEB = Path(__file__).parent / "web"
MODULES = {"uplot": "uPlot.esm.js", "chart": "chart.js", "table": "table.js"}
STYLES = ("uPlot.min.css", "page.css")
START = "report.js"


def write_page(path: str | Path, content: Mapping[str, Any]) -> Path:
    """Writes the page that shows this content to `path`; makes its folder if there is none."""
    place = Path(path)
    if place.is_dir():
        raise BadData(f"{place}: is a folder: name a file, such as {place / 'report.html'}")
    place.parent.mkdir(parents=True, exist_ok=True)
    return write(place, page(content))


def page(content: Mapping[str, Any]) -> str:
    """The page, as HTML. Its policy allows the scripts and styles that are inside, and no request at all."""
    urls = {name: _url((WEB / file).read_bytes()) for name, file in MODULES.items()}
    imports = json.dumps({"imports": urls})
    start = (WEB / START).read_text()
    styles = "\n".join((WEB / name).read_text() for name in STYLES)
    data = _embedded(content)
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src data: {source_hash(imports)} {source_hash(start)}",
            f"style-src {source_hash(styles)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    title = html.escape(str(content["title"]))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{styles}</style>
<script type="importmap">{imports}</script>
</head>
<body>
<noscript>This report draws its tables and curves with the script inside it: allow scripts to see it.</noscript>
<div id="page"></div>
<script type="application/json" id="content">{data}</script>
<script type="module">{start}</script>
</body>
</html>
"""


def packed(numbers: Any) -> dict[str, str]:
    """Numbers as the page reads them: little-endian float64 in base64."""
    array = np.ascontiguousarray(numbers, "<f8")
    return {"f8": base64.b64encode(array.tobytes()).decode()}


def rounded(numbers: Any) -> dict[str, str]:
    """Numbers with seven digits: little-endian float32 in base64."""
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(numbers, "<f4")
    return {"f4": base64.b64encode(array.tobytes()).decode()}


def _url(script: bytes) -> str:
    return "data:text/javascript;base64," + base64.b64encode(script).decode()


def source_hash(inline: str) -> str:
    """The source of a content security policy that allows just this script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


def _embedded(content: Any) -> str:
    """JSON that cannot end the script element around it, whatever the names in it."""
    return (
        finite_json.dumps(content)
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
