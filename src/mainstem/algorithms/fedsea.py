"""FedSEA: local stochastic gradient steps, models averaged every tau steps (Sahu et al. 2026)."""

from typing import Unpack

from mainstem import extend as mx
from mainstem.algorithms.send_models import SendModels


@mx.preset(SendModels, period="sync.period", offset="sync.offset", domain="mirror.domain")
def fedsea(
    step: mx.AnyStep,
    period: int = 1,
    offset: int = 0,
    domain: mx.Domain = mx.parts.everything(),
    **parts: Unpack[mx.PartsButSync],
) -> SendModels:
    r"""FedOMD's step with the euclidean map, for an adversary that chooses *distributions*.

    Algorithm 1: each client decides with :math:`x_{t,m}`, sees a draw from its distribution and updates to

    .. math:: x_{t+1,m} = \Pi_X (x_{t,m} - \eta_t \nabla f(x_{t,m}, \xi_{t,m}));

    every `period` steps all clients take the mean. As printed, the paper averages after steps 1, tau + 1,
    2 tau + 1, ... (`offset=1`); its proof needs tau, 2 tau, ..., which is the default. The printed
    step 2 / (mu t) of Theorem 2 is unstable in the first steps: use a shift of the order of the condition
    number, ``inverse_time(sigma=mu, shift=kappa)``.

    >>> import mainstem as ms
    >>> ms.fedsea(step=0.1, period=4, offset=1).sync
    every(period=4, offset=1)
    """
    rule, when = mx.as_step("fedsea", "step", step), mx.parts.every(period, offset)
    return SendModels(rule, mx.parts.euclidean(domain), sync=when, family="fedsea", **parts)
