"""`mainstem plan`: computes OFedIQ's parameters for a traffic budget."""

from typing import Annotated

import typer

from mainstem.cli import output
from mainstem.cli.options import Json


def plan(
    budget: Annotated[float, typer.Option(help="Share of FedOGD's uplink that may be used.")],
    parameters: Annotated[int, typer.Option(help="Number of parameters of the model.")],
    json: Json = False,
) -> None:
    """Compute levels, blocks and rate of OFedIQ for a traffic budget.

    Example: mainstem plan --budget 0.01 --parameters 34826
    """
    from mainstem.theory.planner import plan as planned

    found = planned(budget, parameters)
    row = {
        "rate": round(found.rate, 6),
        "levels": found.levels,
        "blocks": found.blocks,
        "bits_per_client_and_step": round(found.bits, 3),
        "share_of_plain_uplink": round(found.spent, 6),
    }
    if json:
        output.as_json(row)
    else:
        output.as_table([row])
