"""FedSEA: local stochastic gradient steps, models averaged every tau steps (Sahu et al. 2026)."""

from mainstem.algorithms.fedomd import fedomd
from mainstem.base import Algorithm, Domain, Step
from mainstem.parts.mirror import euclidean
from mainstem.parts.sync import every
from mainstem.spec import recorded


@recorded
def fedsea(
    step: Step | float | str, period: int = 1, offset: int = 0, domain: Domain | None = None
) -> Algorithm:
    r"""FedOMD's step with the euclidean map, against an adversary who picks *distributions*.

    Algorithm 1: each client plays :math:`x_{t,m}`, sees a draw of its distribution and moves to

    .. math:: x_{t+1,m} = \Pi_X (x_{t,m} - \eta_t \nabla f(x_{t,m}, \xi_{t,m}));

    every `period` steps all take the mean. As printed the paper averages after steps 1, tau + 1,
    2 tau + 1, ... (`offset=1`); its proof needs tau, 2 tau, ..., which is the default. The printed
    step 2 / (mu t) of Theorem 2 is unstable early: give it a shift of the order of the condition
    number, ``inverse_time(sigma=mu, shift=kappa)``.

    >>> import mainstem as ms
    >>> ms.fedsea(step=0.1, period=4, offset=1).sync.spec
    every(period=4, offset=1)
    """
    return fedomd(step, mirror=euclidean(domain), sync=every(period, offset))
