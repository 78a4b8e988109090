"""The algorithms, one file each. Being listed here is being tested by the contract suite."""

from mainstem.algorithms.fedogd import fedogd
from mainstem.algorithms.fedomd import fedomd
from mainstem.algorithms.fedsea import fedsea
from mainstem.algorithms.ofedavg import ofedavg
from mainstem.algorithms.ofediq import ofediq

__all__ = ["fedogd", "fedomd", "fedsea", "ofedavg", "ofediq"]
