"""Parts of algorithms: mirror maps, domains, step sizes, syncs, participations, codecs, collects, optimizers."""

from mainstem.parts.codec import half, plain, top_k
from mainstem.parts.collect import clipped, each, median, total, trimmed_mean
from mainstem.parts.domain import box, everything, l1_ball, l2_ball, p_ball, simplex
from mainstem.parts.error_feedback import error_feedback
from mainstem.parts.mirror import entropy, euclidean, p_norm
from mainstem.parts.missing import last_value, running_mean
from mainstem.parts.network import network
from mainstem.parts.optimizer import optimizer
from mainstem.parts.participation import bernoulli, everyone, exactly, given
from mainstem.parts.quantiser import quantiser
from mainstem.parts.scaling import standardised
from mainstem.parts.step import adagrad, auto, constant, inverse_sqrt, inverse_time, schedule
from mainstem.parts.sync import after_steps, every, never

__all__ = [
    "adagrad",
    "after_steps",
    "auto",
    "bernoulli",
    "box",
    "clipped",
    "constant",
    "each",
    "entropy",
    "error_feedback",
    "euclidean",
    "every",
    "everyone",
    "everything",
    "exactly",
    "given",
    "half",
    "inverse_sqrt",
    "inverse_time",
    "l1_ball",
    "l2_ball",
    "last_value",
    "median",
    "network",
    "never",
    "optimizer",
    "p_ball",
    "p_norm",
    "plain",
    "quantiser",
    "running_mean",
    "schedule",
    "simplex",
    "standardised",
    "top_k",
    "total",
    "trimmed_mean",
]
