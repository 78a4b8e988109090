"""Options that several commands have."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="Change one key: simulate.steps=100.")
]
