"""Theorems of the papers, one module each: bounds, the step of each theorem, and the runs they apply to.

Each module is loaded when first used: the planner needs none of the others.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

PAPERS = ("fedomd", "fedsea", "ofediq", "dynamic_fedavg", "fedres")

# The step of each theorem; these are parts, which experiment files can use too.
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
