"""FedRes.SGD: a shared and an own model, with aligned gradients under delays (Agarwal, Langford and Wei 2020)."""

from typing import Unpack

from mainstem import extend as mx
from mainstem.algorithms.follow_residuals import ALIGNED, ON_ARRIVAL, SAMPLE, FollowResiduals


@mx.preset(FollowResiduals)
def fedres_sgd(
    step: mx.AnyStep,
    own_step: mx.AnyStep | None = None,
    domain: mx.Domain = mx.parts.everything(),
    period: int = 1,
    message: str = SAMPLE,
    variant: str = ALIGNED,
    **parts: Unpack[mx.PartsButSync],
) -> FollowResiduals:
    r"""Server and clients each step along their own gradient of one loss, at the models that decided.

    Client i decides with the pair :math:`(w^g_{t-\beta}, w_{i,t})`, and (Algorithms 3 and 4)

    .. math:: w_{i,t} = \Pi_D(w_{i,t-1} - \eta_i \nabla^l_{i,t-\tau_i}), \qquad
              w^g_t = \Pi_D\Big(w^g_{t-1} - \eta \sum_i \nabla^g_{i,t-\alpha_i}\Big),

    all gradients at the pair that decided. The client applies its own gradient when the broadcast that
    contains its message arrives, one round trip later. `step` is the server's step size, `own_step` the
    clients' (the same if left out), `domain` the set of each of the two models. If step sizes fall with t,
    the shared and the own part of one gradient are taken with the step sizes of the same t, that of the
    merge which takes the shared part; in the mis-aligned variants the client's t is that of its sending.

    The `message` is the sample as the server needs it (global features, local prediction, label),
    or the gradient. The gradient is smaller if the shared part has no more parameters than `period` such
    samples have numbers (Section 4: the mean loss of `period` steps, one sync for all of them), and any
    `codec` and `collect` may be used with it. `variant` gives the two mis-aligned rules of Section 3.2.1:
    "on_arrival" (the server takes the gradient at its current model, the client steps at once) and
    "undelayed" (aligned gradients, but the client steps at once).

    >>> import mainstem as ms
    >>> problem = ms.problems.personal(shared=4, own=2)
    >>> world = ms.streams.residuals(clients=10, shared=4, own=2)
    >>> run = ms.simulate(ms.fedres_sgd(step=0.02), problem, world, steps=300)
    >>> bool(run.loss[-50:].mean() < 0.3 * run.loss[:10].mean())
    True
    """
    rule = mx.as_step("fedres_sgd", "step", step)
    mine = rule if own_step is None else mx.as_step("fedres_sgd", "own_step", own_step)
    return FollowResiduals(rule, mine, domain, period, message, variant, **parts)


@mx.preset(FollowResiduals)
def central(
    step: mx.AnyStep,
    domain: mx.Domain = mx.parts.everything(),
    period: int = 1,
    message: str = SAMPLE,
    variant: str = ALIGNED,
    **parts: Unpack[mx.PartsButSync],
) -> FollowResiduals:
    r"""The server learns alone, from the global features of all clients (the baseline of Section 6.2).

    .. math:: w^g_t = \Pi_D\Big(w^g_{t-1} - \eta \sum_i \nabla^g_{i,t-\alpha_i}\Big)

    Gradients are summed, not averaged. A client sends (global features, label); its own model is zero.
    Late gradients are taken at the model that predicted, or, with ``variant="on_arrival"``, at the
    newest model of the server when they arrive.

    >>> import mainstem as ms
    >>> ms.central(step=0.1).sync
    every(period=1)
    """
    mx.check.one_of("central", "variant", variant, (ALIGNED, ON_ARRIVAL))
    rule = mx.as_step("central", "step", step)
    return FollowResiduals(rule, None, domain, period, message, variant, **parts)
