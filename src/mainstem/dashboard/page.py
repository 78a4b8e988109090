"""The live page's HTML, scripts and styles. Charts and tables are those of reports."""

import functools
import html
import json
from pathlib import Path

from mainstem.report.page import MODULES, STYLES, WEB, source_hash

HERE = Path(__file__).parent / "web"
OWN = ("live.js", "orders.js", "sites.js", "live.css")
IMPORTS = json.dumps(
    {
        "imports": {
            name: f"/{file}"
            for name, file in (MODULES | {"orders": "orders.js", "sites": "sites.js"}).items()
        }
    }
)
POLICY = "; ".join(
    [
        "default-src 'none'",
        f"script-src 'self' {source_hash(IMPORTS)}",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


@functools.cache
def files() -> dict[str, bytes]:
    """The scripts and styles, by name."""
    shared = {name: (WEB / name).read_bytes() for name in (*MODULES.values(), *STYLES)}
    return shared | {name: (HERE / name).read_bytes() for name in OWN}


def page(about: str) -> str:
    """The page; `about`: what it follows."""
    styles = "".join(f'<link rel="stylesheet" href="/{name}">\n' for name in (*STYLES, "live.css"))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>mainstem</title>
<link rel="icon" href="data:,">
{styles}<script type="importmap">{IMPORTS}</script>
</head>
<body>
<noscript>This page is drawn by its script: allow scripts to see it.</noscript>
<div id="page" data-about="{html.escape(about)}"></div>
<script type="module" src="/live.js"></script>
</body>
</html>
"""
