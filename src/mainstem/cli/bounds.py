"""`mainstem bounds`: evaluates every theorem in numbers."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from mainstem.cli import output
from mainstem.cli.options import Json

# Constants for which the assumptions of every theorem hold.
CONSTANTS: dict[str, Any] = {
    "steps": 1000,
    "clients": 20,
    "step": 0.004,
    "period": 5,
    "lipschitz": 2.0,
    "divergence": 4.5,
    "curvature": 0.5,
    "smoothness": 1.0,
    "distance": 1.0,
    "largest": 1.0,
    "risk": 0.05,
    "noise": 1.0,
    "spatial": 0.5,
    "temporal": 0.1,
    "shift": None,  # the smallest that FedSEA's Theorem 2 allows
    "rate": 0.1,
    "variance": 1.0,
    "rounding": 0.5,
    "levels": 3,
    "blocks": 10,
    "parameters": 650,
    "participants": 7,
    "held": 100,
    "batch": 10,
    "epochs": 5,
    "deviation": 0.1,
    "data": 1.0,
    "model": 0.5,
    "disagreement": 0.1,
    "drift": 0.0001,
    "shared": 10,
    "own": 5,
    "radius": 1.0,
    "gradient": 2.0,
    "norm": 21.0,
    "actions": 5,
    "round_trip": 3,
}


def bounds(
    theorem: Annotated[str | None, typer.Argument(help="One theorem; all if left out.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change one constant: clients=50.")
    ] = None,
    json: Json = False,
) -> None:
    """Evaluate each theorem for a set of constants, and print whether it is a guarantee.

    Example: mainstem bounds fedomd_theorem_1 --set steps=2000 --set period=20
    """
    from mainstem import check, theory

    known = {it.__name__: it for paper in theory.PAPERS for it in getattr(theory, paper).THEOREMS}
    if theorem is not None:
        known = {check.one_of("bounds", "the theorem", theorem, known): known[theorem]}
    changes = dict(_constant(change) for change in set_ or [])
    for name in changes:
        check.one_of("bounds", "a constant", name, list(CONSTANTS))
    rows = [_line(it, CONSTANTS | changes, refuse=len(known) == 1) for it in known.values()]
    if json:
        output.as_json(rows)
        return
    for row in rows:
        value = "-" if row["value"] is None else f"{row['value']:.6g}"
        print(f"{row['theorem']:34}{value:>12}  {row['kind']:11} {row['text']}")


def _line(theorem: Callable[..., Any], constants: dict[str, Any], refuse: bool) -> dict[str, Any]:
    """The value of a theorem for these constants, or why it has none."""
    from mainstem.errors import BadParameter
    from mainstem.theory import fedsea_shift

    wanted = inspect.signature(theorem).parameters
    given = {key: value for key, value in constants.items() if key in wanted}
    if "shift" in given and given["shift"] is None:
        known = {key: constants[key] for key in ("smoothness", "curvature", "period")}
        given["shift"] = fedsea_shift(**known)
    line: dict[str, Any] = {"theorem": theorem.__name__, "value": None, "kind": "refused"}
    line |= {"text": "", "constants": given}
    try:
        return line | _terms(theorem, theorem(**given))
    except BadParameter as error:
        if refuse:
            raise
        return line | {"text": str(error)}


def _terms(theorem: Callable[..., Any], found: Any) -> dict[str, Any]:
    from mainstem.theory import Bound, Comparison, Rate

    if isinstance(found, Bound):
        return {"value": float(found), "kind": "guarantee", "text": str(found)}
    if isinstance(found, Rate):
        return {"value": float(found.shape), "kind": "rate", "text": str(found)}
    if isinstance(found, Comparison):
        text = f"alpha {found.one:.6g} against {found.other:.6g}, {found.ratio:.3g} times"
        return {"value": found.ratio, "kind": "comparison", "text": text}
    summary = str(inspect.getdoc(theorem)).partition("\n")[0]
    text = summary.partition(":math:")[0].rstrip(": ")
    return {"value": float(found), "kind": "comparison", "text": text}


def _constant(change: str) -> tuple[str, object]:
    import tomllib

    from mainstem.errors import BadSpec

    name, _, value = change.partition("=")
    try:
        return name.strip(), tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        raise BadSpec(f"--set {change}: wants name=number, such as clients=50") from None
