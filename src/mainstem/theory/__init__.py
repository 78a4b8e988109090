"""What the papers prove, as functions: a guarantee (`Bound`) or a rate (`Rate`) for each theorem."""

from mainstem.theory.bound import Bound, Rate
from mainstem.theory.dynamic_fedavg import dynamic_fedavg_lemma_1, dynamic_fedavg_theorem_1
from mainstem.theory.fedomd import (
    fedomd_theorem_1,
    fedomd_theorem_2,
    fedomd_theorem_3,
    fedomd_theorem_3_strongly_convex,
)
from mainstem.theory.fedres import fedres_theorem_1, fedres_theorem_2, fedres_theorem_3
from mainstem.theory.fedsea import (
    fedsea_equation_10,
    fedsea_shift,
    fedsea_theorem_1,
    fedsea_theorem_2,
)
from mainstem.theory.ofediq import (
    Comparison,
    ofediq_alpha,
    ofediq_corollary_1,
    ofediq_equation_11,
    ofediq_equation_15,
    ofediq_section_4_2_1,
    ofediq_theorem_1,
    ofediq_theorem_2,
    rounding_variance,
)
from mainstem.theory.planner import Plan, plan

__all__ = [
    "Bound",
    "Comparison",
    "Plan",
    "Rate",
    "dynamic_fedavg_lemma_1",
    "dynamic_fedavg_theorem_1",
    "fedomd_theorem_1",
    "fedomd_theorem_2",
    "fedomd_theorem_3",
    "fedomd_theorem_3_strongly_convex",
    "fedres_theorem_1",
    "fedres_theorem_2",
    "fedres_theorem_3",
    "fedsea_equation_10",
    "fedsea_shift",
    "fedsea_theorem_1",
    "fedsea_theorem_2",
    "ofediq_alpha",
    "ofediq_corollary_1",
    "ofediq_equation_11",
    "ofediq_equation_15",
    "ofediq_section_4_2_1",
    "ofediq_theorem_1",
    "ofediq_theorem_2",
    "plan",
    "rounding_variance",
]
