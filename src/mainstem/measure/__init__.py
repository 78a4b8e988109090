"""What a run was worth and what a stream is like: regret with its proof, and the theorems' constants."""

from mainstem.measure.constants import (
    curvature,
    distance,
    lipschitz,
    mean_curvature,
    mean_smoothness,
    sample_smoothness,
    smoothness,
    spread,
    variance,
)
from mainstem.measure.estimate import Estimate
from mainstem.measure.geometry import divergence, gap
from mainstem.measure.heterogeneity import heterogeneity
from mainstem.measure.prefix import Prefix
from mainstem.measure.steps import path_length
from mainstem.measure.tracking import tracking

__all__ = [
    "Estimate",
    "Prefix",
    "curvature",
    "distance",
    "divergence",
    "gap",
    "heterogeneity",
    "lipschitz",
    "mean_curvature",
    "mean_smoothness",
    "path_length",
    "sample_smoothness",
    "smoothness",
    "spread",
    "tracking",
    "variance",
]
