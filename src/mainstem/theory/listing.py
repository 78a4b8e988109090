"""All theorems for one set of constants: what `mainstem bounds` prints."""

import inspect
from collections.abc import Mapping
from typing import Any

from mainstem import check, theory
from mainstem.errors import BadParameter
from mainstem.theory.bound import Bound, Rate
from mainstem.theory.ofediq import Comparison

THEOREMS = (
    "fedomd_theorem_1",
    "fedomd_theorem_2",
    "fedomd_theorem_3",
    "fedomd_theorem_3_strongly_convex",
    "fedsea_theorem_1",
    "fedsea_theorem_2",
    "fedsea_equation_10",
    "ofediq_theorem_1",
    "ofediq_theorem_2",
    "ofediq_corollary_1",
    "ofediq_alpha",
    "ofediq_equation_11",
    "ofediq_section_4_2_1",
    "ofediq_equation_15",
    "dynamic_fedavg_lemma_1",
    "dynamic_fedavg_theorem_1",
    "fedres_theorem_1",
    "fedres_theorem_2",
    "fedres_theorem_3",
)
# A world in which every theorem's assumptions hold.
CONSTANTS: dict[str, Any] = {
    "steps": 1000,
    "clients": 20,
    "step": 0.01,
    "gap": 5,
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
    "shift": None,  # the least that FedSEA's Theorem 2 allows
    "rate": 0.1,
    "period": 1,
    "variance": 1.0,
    "rounding": 0.5,
    "levels": 3,
    "blocks": 10,
    "parameters": 650,
    "heard": 7,
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


def listed(changes: Mapping[str, Any], names: tuple[str, ...] = THEOREMS) -> list[dict[str, Any]]:
    """A line for each theorem: its number for `CONSTANTS` with `changes`, or why there is none."""
    for name in changes:
        check.one_of("bounds", "a constant", name, list(CONSTANTS))
    return [_line(name, CONSTANTS | dict(changes), refuse=len(names) == 1) for name in names]


def _line(name: str, constants: dict[str, Any], refuse: bool) -> dict[str, Any]:
    function = getattr(theory, name)
    wanted = inspect.signature(function).parameters
    given = {key: value for key, value in constants.items() if key in wanted}
    if "shift" in given and given["shift"] is None:
        known = {key: constants[key] for key in ("smoothness", "curvature", "gap")}
        given["shift"] = theory.fedsea_shift(**known)
    line = {"theorem": name, "value": None, "kind": "refused", "says": "", "constants": given}
    try:
        found = function(**given)
    except BadParameter as error:
        if refuse:
            raise
        return line | {"says": str(error)}
    if isinstance(found, Bound):
        return line | {"value": float(found), "kind": "guarantee", "says": str(found)}
    if isinstance(found, Rate):
        return line | {"value": float(found.shape), "kind": "rate", "says": str(found)}
    if isinstance(found, Comparison):
        says = f"alpha {found.one:.6g} against {found.other:.6g}, {found.ratio:.3g} times"
        return line | {"value": found.ratio, "kind": "comparison", "says": says}
    return line | {"value": float(found), "kind": "comparison", "says": _summary(function)}


def _summary(function: Any) -> str:
    return str(inspect.getdoc(function)).partition("\n")[0].partition(":math:")[0].rstrip(": ")
