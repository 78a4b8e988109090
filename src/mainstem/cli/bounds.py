"""`mainstem bounds`: every theorem in numbers."""

from typing import Annotated

import typer

from mainstem.cli import show


def bounds(
    theorem: Annotated[str | None, typer.Argument(help="One theorem; all if left out.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change one constant: clients=50.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What each theorem says for a set of constants, and whether it is a guarantee.

    Example: mainstem bounds fedomd_theorem_1 --set steps=2000 --set gap=20
    """
    from mainstem import check
    from mainstem.theory import listing

    names: tuple[str, ...] = listing.THEOREMS
    if theorem is not None:
        names = (check.one_of("bounds", "the theorem", theorem, names),)
    rows = listing.listed(dict(_constant(change) for change in set_ or []), names)
    if json:
        show.as_json(rows)
        return
    for row in rows:
        value = "-" if row["value"] is None else f"{row['value']:.6g}"
        print(f"{row['theorem']:34}{value:>12}  {row['kind']:11} {row['says']}")


def _constant(change: str) -> tuple[str, object]:
    import tomllib

    from mainstem.errors import BadSpec

    name, _, value = change.partition("=")
    try:
        return name.strip(), tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        raise BadSpec(f"--set {change}: wants name=number, such as clients=50") from None
