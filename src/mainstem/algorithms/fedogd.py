"""FedOGD: every client sends its gradient at every step (the limit that OFedIQ is measured against)."""

from mainstem.algorithms.ofediq import ofediq
from mainstem.base import Algorithm, Step
from mainstem.spec import recorded


@recorded
def fedogd(step: Step | float | str) -> Algorithm:
    r"""OFedIQ in which everybody speaks, at once and exactly (Kwon et al. 2023, Section 3).

    .. math:: w \leftarrow w - \frac{\eta}{K} \sum_{k=1}^K \nabla \ell(w; z_{k,t})

    >>> import mainstem as ms
    >>> ms.fedogd(step=0.1).codec.bits(650, 32)
    20800.0
    """
    return ofediq(step)
