"""The report of a reproduced result: each claim with its evidence and verdict, and the figure."""

import base64
from importlib import metadata
from pathlib import Path
from typing import Any

from mainstem.papers.reproduce import Outcome
from mainstem.papers.result import Result
from mainstem.report.tables import for_page


def content(outcome: Outcome, result: Result, figure: Path) -> dict[str, Any]:
    """The content of the page."""
    rows = [
        {
            "claim": each.claim,
            "verdict": each.verdict if each.as_recorded else f"{each.verdict}: NOT AS RECORDED",
            "measured": each.measured,
            "why": each.why,
        }
        for each in outcome.claims
    ]
    image = base64.b64encode(figure.read_bytes()).decode()
    command = f"mainstem reproduce {outcome.name}{' --quick' * (outcome.size == 'quick')}"
    facts = {
        "Paper": result.paper,
        "Command": command + (f" --seed {outcome.seed}" if outcome.seed else ""),
        "Finished": outcome.finished,
        "Seconds": f"{outcome.seconds:g}",
        "Devices": ", ".join(outcome.devices),
    }
    changed = [f"Not as recorded: {each.claim}" for each in outcome.claims if not each.as_recorded]
    return {
        "title": f"{outcome.name}: {result.paper}",
        "made": f"A report of mainstem {metadata.version('mainstem')}, {outcome.finished}",
        "table": for_page(rows, "The claims of the paper, checked"),
        "warnings": changed,
        "sections": [
            {
                "id": "figure",
                "title": "Figure",
                "charts": [],
                "texts": [],
                "tables": [],
                "images": [
                    {"url": f"data:image/png;base64,{image}", "alt": f"Figure of {outcome.name}"}
                ],
            }
        ],
        "runs": [],
        "environment": list(facts.items()),
    }
