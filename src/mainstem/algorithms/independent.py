"""Independent: every client learns alone (the baseline of Agarwal et al. 2020)."""

from mainstem.algorithms.fedomd import fedomd
from mainstem.base import Algorithm, Mirror, Step
from mainstem.parts.sync import never
from mainstem.spec import recorded


@recorded
def independent(step: Step | float | str, mirror: Mirror | None = None) -> Algorithm:
    r"""FedOMD that never syncs: each client takes steps on its own losses, with all its features.

    .. math:: w_{i,t+1} = \Pi(w_{i,t} - \eta \nabla \ell_{i,t}(w_{i,t}))

    >>> import mainstem as ms
    >>> stream = ms.streams.residuals(clients=3, shared=2, own=2)
    >>> run = ms.simulate(ms.independent(step=0.05), ms.problems.personal(2, 2), stream, steps=20)
    >>> int(run.uplink_bits[-1])
    0
    """
    return fedomd(step, mirror=mirror, sync=never())
