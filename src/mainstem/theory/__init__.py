"""What the papers prove, one module each: bounds, the step of each theorem, and which runs they speak of.

Loaded when first used: the planner needs none of the rest.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainstem.theory import dynamic_fedavg, fedomd, fedres, fedsea, ofediq
    from mainstem.theory.bound import Bound, Rate
    from mainstem.theory.dynamic_fedavg import (
        dynamic_fedavg_drift,
        dynamic_fedavg_lemma_1,
        dynamic_fedavg_theorem_1,
    )
    from mainstem.theory.fedomd import (
        fedomd_convex,
        fedomd_strongly_convex,
        fedomd_theorem_1,
        fedomd_theorem_2,
        fedomd_theorem_3,
        fedomd_theorem_3_strongly_convex,
    )
    from mainstem.theory.fedres import (
        fedres_convex,
        fedres_exploration,
        fedres_theorem_1,
        fedres_theorem_2,
        fedres_theorem_3,
    )
    from mainstem.theory.fedsea import (
        fedsea_convex,
        fedsea_equation_10,
        fedsea_gap,
        fedsea_printed,
        fedsea_shift,
        fedsea_strongly_convex,
        fedsea_theorem_1,
        fedsea_theorem_2,
    )
    from mainstem.theory.ofediq import (
        Comparison,
        ofediq_alpha,
        ofediq_convex,
        ofediq_corollary_1,
        ofediq_equation_11,
        ofediq_equation_15,
        ofediq_section_4_2_1,
        ofediq_theorem_1,
        ofediq_theorem_2,
        rounding_variance,
    )
    from mainstem.theory.planner import Plan, plan

PAPERS = ("fedomd", "fedsea", "ofediq", "dynamic_fedavg", "fedres")

# The step of each theorem: parts, for experiment files too.
STEPS = (
    "dynamic_fedavg_drift",
    "fedomd_convex",
    "fedomd_strongly_convex",
    "fedres_convex",
    "fedsea_convex",
    "fedsea_printed",
    "fedsea_strongly_convex",
    "ofediq_convex",
)

__all__ = [
    "Bound",
    "Comparison",
    "Plan",
    "Rate",
    "dynamic_fedavg",
    "dynamic_fedavg_drift",
    "dynamic_fedavg_lemma_1",
    "dynamic_fedavg_theorem_1",
    "fedomd",
    "fedomd_convex",
    "fedomd_strongly_convex",
    "fedomd_theorem_1",
    "fedomd_theorem_2",
    "fedomd_theorem_3",
    "fedomd_theorem_3_strongly_convex",
    "fedres",
    "fedres_convex",
    "fedres_exploration",
    "fedres_theorem_1",
    "fedres_theorem_2",
    "fedres_theorem_3",
    "fedsea",
    "fedsea_convex",
    "fedsea_equation_10",
    "fedsea_gap",
    "fedsea_printed",
    "fedsea_shift",
    "fedsea_strongly_convex",
    "fedsea_theorem_1",
    "fedsea_theorem_2",
    "ofediq",
    "ofediq_alpha",
    "ofediq_convex",
    "ofediq_corollary_1",
    "ofediq_equation_11",
    "ofediq_equation_15",
    "ofediq_section_4_2_1",
    "ofediq_theorem_1",
    "ofediq_theorem_2",
    "plan",
    "rounding_variance",
]

_ELSEWHERE = {
    "Bound": "bound",
    "Rate": "bound",
    "Comparison": "ofediq",
    "rounding_variance": "ofediq",
    "Plan": "planner",
    "plan": "planner",
}


def __getattr__(name: str) -> Any:
    if name in PAPERS:
        return importlib.import_module(f"mainstem.theory.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'mainstem.theory' has no attribute {name!r}")
    home = _ELSEWHERE.get(name) or next(paper for paper in PAPERS if name.startswith(paper))
    return getattr(importlib.import_module(f"mainstem.theory.{home}"), name)


def __dir__() -> list[str]:
    return __all__
