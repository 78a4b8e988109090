"""FedOMD: local mirror descent, with models averaged at each sync (Mitra, Hassani and Pappas 2021)."""

from typing import Unpack

from mainstem import extend as mx
from mainstem.algorithms.send_models import SendModels


@mx.preset(SendModels)
def independent(step: mx.AnyStep, mirror: mx.Mirror = mx.parts.euclidean()) -> SendModels:
    r"""Every client learns alone, with all its features (the baseline of Agarwal et al. 2020).

    .. math:: w_{i,t+1} = \Pi(w_{i,t} - \eta \nabla \ell_{i,t}(w_{i,t}))

    >>> import mainstem as ms
    >>> stream = ms.streams.residuals(clients=3, shared=2, own=2)
    >>> run = ms.simulate(ms.independent(step=0.05), ms.problems.personal(2, 2), stream, steps=20)
    >>> int(run.uplink_bits[-1])
    0
    """
    return SendModels(mx.as_step("independent", "step", step), mirror, sync=mx.parts.never())


@mx.preset(SendModels)
def fedomd(
    step: mx.AnyStep, mirror: mx.Mirror = mx.parts.euclidean(), **parts: Unpack[mx.Parts]
) -> SendModels:
    """Local mirror steps; at a sync all clients take the mean of the sampled clients' models.

    The equations are those of `SendModels`.

    >>> import mainstem as ms
    >>> run = ms.simulate(
    ...     ms.fedomd(
    ...         step=ms.parts.inverse_time(sigma=2.0),
    ...         mirror=ms.parts.euclidean(ms.parts.box(-3, 3)),
    ...         sync=ms.parts.every(5),
    ...     ),
    ...     ms.problems.quadratic(dimension=1, low=-3, high=3),
    ...     ms.streams.alternating(clients=20),
    ...     steps=100,
    ... )
    >>> run.regret().kind
    'collective'
    """
    return SendModels(mx.as_step("fedomd", "step", step), mirror, **parts)
