"""Options that several commands have."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Track = Annotated[
    list[str] | None,
    typer.Option(
        "--track", help="Write curves: csv:FILE, jsonl:FILE, tensorboard:FOLDER, mlflow:URI."
    ),
]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="Change one key: simulate.steps=100.")
]
