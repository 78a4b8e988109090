"""`mainstem advise`: ranks algorithms, with parameters, for the problem and stream of an experiment file."""

import math
from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli import output
from mainstem.cli.options import Json


def advise(
    file: Annotated[
        Path, typer.Argument(help="The experiment, in TOML; its algorithms are ignored.")
    ],
    budget: Annotated[float, typer.Option(help="Share of the plain uplink that may be used.")],
    steps: Annotated[
        int | None, typer.Option(help="Steps to plan for (default: the file's simulate.steps).")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change one key: stream.clients=50.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure the first steps of a stream and rank the algorithms for a traffic budget.

    Example: mainstem advise examples/digits.toml --budget 0.01
    """
    from mainstem import compilation_cache
    from mainstem.lab import advise_file
    from mainstem.spec import name_of

    with compilation_cache.used():
        advice = advise_file(file, set_ or [], budget, steps)
    if json:
        output.as_json({"ways": advice.table(), "measured": advice.pilot._asdict()})
        return
    for place, row in enumerate(advice.rows, start=1):
        regret = f"{row.regret:.4g}" if math.isfinite(row.regret) else "not predicted"
        print(f"{place}. {name_of(row.algorithm)}({row.parameters})")
        print(f"   predicted regret {regret}, {row.uplink_bits:.3g} bits up", end="")
        print(f" ({100 * row.uplink_share:.3g} % of plain); {row.why}")
    print(f"\nMeasured on the first {advice.pilot.steps} steps. Predictions are no guarantees.")
