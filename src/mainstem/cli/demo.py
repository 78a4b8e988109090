"""`mainstem demo`: runs several algorithms on real digits, in about half a minute."""

from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli import output
from mainstem.cli.options import Json


def demo(
    folder: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("demo"),
    steps: Annotated[int, typer.Option(min=1, help="Steps of each run.")] = 500,
    json: Json = False,
) -> None:
    """Run FedOGD, OFedAvg, OFedIQ, FedOMD and FedSEA on handwritten digits divided among 1,000 clients.

    Example: mainstem demo --folder demo
    """
    from mainstem import compilation_cache
    from mainstem.lab import REPORT, run_demo

    with compilation_cache.used():
        rows, figure = run_demo(folder, steps)
    if json:
        output.as_json(
            {"runs": rows, "figure": str(figure), "report": str(figure.with_name(REPORT))}
        )
        return
    output.as_table(rows)
    print("\nThe saving is of the uplink, against every client sending plainly at every step.")
    print(f"Figure: {figure}")
    print(f"Report: {figure.with_name(REPORT)}: open it in a browser")
