"""The algorithms, one file each. Being listed here is being tested by the contract suite."""

from mainstem.algorithms.central import central
from mainstem.algorithms.dynamic_fedavg import dynamic_fedavg
from mainstem.algorithms.fedogd import fedogd
from mainstem.algorithms.fedomd import fedomd
from mainstem.algorithms.fedres_erm import fedres_erm
from mainstem.algorithms.fedres_sgd import fedres_sgd
from mainstem.algorithms.fedsea import fedsea
from mainstem.algorithms.fictitious_play import fictitious_play
from mainstem.algorithms.independent import independent
from mainstem.algorithms.ofedavg import ofedavg
from mainstem.algorithms.ofediq import ofediq

__all__ = [
    "central",
    "dynamic_fedavg",
    "fedogd",
    "fedomd",
    "fedres_erm",
    "fedres_sgd",
    "fedsea",
    "fictitious_play",
    "independent",
    "ofedavg",
    "ofediq",
]
