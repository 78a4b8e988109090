"""`mainstem data`: lists and fetches the named datasets."""

import typer

from mainstem.cli import output
from mainstem.cli.options import Json

app = typer.Typer(
    help="List the datasets, or fetch one into the cache folder.", no_args_is_help=True
)


@app.command("list")
def listed(json: Json = False) -> None:
    """List the datasets, and whether each is in the cache folder ($MAINSTEM_DATA if set).

    Example: mainstem data list
    """
    from mainstem import datasets

    rows = []
    for name in datasets.names():
        about = datasets.describe(name)
        rows.append(
            {
                "name": name,
                "status": datasets.status(name),
                "task": about.task,
                "about": about.about,
            }
        )
    if json:
        output.as_json(rows)
    else:
        output.as_table(rows)


@app.command("get")
def get(name: str, json: Json = False) -> None:
    """Fetch a dataset from its public source, verify it, and store it in the cache folder.

    Example: mainstem data get elec2
    """
    from mainstem import datasets

    folder = str(datasets.get(name))
    if json:
        output.as_json({"name": name, "folder": folder})
    else:
        print(folder)
