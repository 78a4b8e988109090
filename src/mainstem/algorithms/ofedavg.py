"""OFedAvg: a random few of the clients send their gradient at every step."""

from typing import Any

from mainstem.algorithms.ofediq import ofediq
from mainstem.base import Algorithm, Step
from mainstem.spec import recorded


@recorded
def ofedavg(step: Step | float | str, rate: Any) -> Algorithm:
    r"""OFedIQ that only samples its clients: each is heard with probability `rate`.

    .. math:: w \leftarrow w - \frac{\eta}{K} \sum_{k\ \mathrm{heard}} \nabla \ell(w; z_{k,t}) / p_k

    >>> import mainstem as ms
    >>> ms.ofedavg(step=0.1, rate=0.01).participation.spec
    bernoulli(rate=0.01)
    """
    return ofediq(step, rate=rate)
