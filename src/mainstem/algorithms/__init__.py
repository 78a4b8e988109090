"""Algorithms: general ones as classes, those of papers as functions that assemble them.

The contract suite tests every algorithm that is listed here.
"""

from mainstem.algorithms.centred_clipping import centred_clipping
from mainstem.algorithms.dynamic_fedavg import dynamic_fedavg
from mainstem.algorithms.fedomd import fedomd, independent
from mainstem.algorithms.fedres_erm import fedres_erm, fictitious_play
from mainstem.algorithms.fedres_sgd import central, fedres_sgd
from mainstem.algorithms.fedsea import fedsea
from mainstem.algorithms.follow_residuals import FollowResiduals
from mainstem.algorithms.guarded import guarded
from mainstem.algorithms.ofediq import fedogd, ofedavg, ofediq
from mainstem.algorithms.resolve import Resolve
from mainstem.algorithms.send_epochs import SendEpochs
from mainstem.algorithms.send_gradients import SendGradients
from mainstem.algorithms.send_models import SendModels

__all__ = [
    "FollowResiduals",
    "Resolve",
    "SendEpochs",
    "SendGradients",
    "SendModels",
    "central",
    "centred_clipping",
    "dynamic_fedavg",
    "fedogd",
    "fedomd",
    "fedres_erm",
    "fedres_sgd",
    "fedsea",
    "fictitious_play",
    "guarded",
    "independent",
    "ofedavg",
    "ofediq",
]
