"""Measures of runs and streams: regret with a certificate, and the constants of the theorems."""

from mainstem.measure.binary import auc, f1, log_loss
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
from mainstem.measure.geometry import divergence, longest_period
from mainstem.measure.heterogeneity import heterogeneity
from mainstem.measure.of_run import average_model, bandit_regret, held_out, msd, policy_value
from mainstem.measure.prefix import Prefix
from mainstem.measure.regression import error_quantile, pinball
from mainstem.measure.steps import path_length
from mainstem.measure.tracking import tracking

__all__ = [
    "Estimate",
    "Prefix",
    "auc",
    "average_model",
    "bandit_regret",
    "curvature",
    "distance",
    "divergence",
    "error_quantile",
    "f1",
    "held_out",
    "heterogeneity",
    "lipschitz",
    "log_loss",
    "longest_period",
    "mean_curvature",
    "mean_smoothness",
    "msd",
    "path_length",
    "pinball",
    "policy_value",
    "sample_smoothness",
    "smoothness",
    "spread",
    "tracking",
    "variance",
]
