"""OFedIQ: intermittent, quantised uploads (Kwon, Park and Hong 2023, Algorithm 2), and its special cases."""

from typing import Any, Unpack

from mainstem import extend as mx
from mainstem.algorithms.send_gradients import (
    GradientParts,
    MessageParts,
    SendGradients,
    ServerParts,
)


@mx.preset(SendGradients)
def fedogd(step: mx.AnyStep, **parts: Unpack[GradientParts]) -> SendGradients:
    r"""Every client sends its gradient at every step: the reference for OFedIQ.

    .. math:: w \leftarrow w - \frac{\eta}{K} \sum_{k=1}^K \nabla \ell(w; z_{k,t})

    (Kwon et al. 2023, Section 3.)

    >>> import mainstem as ms
    >>> ms.fedogd(step=0.1).codec.bits(650, 32)
    20800.0
    """
    return SendGradients(mx.as_step("fedogd", "step", step), **parts)


@mx.preset(SendGradients, rate="participation.rate")
def ofedavg(step: mx.AnyStep, rate: Any, **parts: Unpack[MessageParts]) -> SendGradients:
    r"""Sampled clients send their gradient: each client is sampled with probability `rate`.

    .. math:: w \leftarrow w - \frac{\eta}{K} \sum_{k\ \mathrm{sampled}} \nabla \ell(w; z_{k,t}) / p_k

    >>> import mainstem as ms
    >>> ms.ofedavg(step=0.1, rate=0.01).participation
    bernoulli(rate=0.01)
    """
    rule = mx.as_step("ofedavg", "step", step)
    return SendGradients(rule, participation=mx.parts.bernoulli(rate), **parts)


@mx.preset(
    SendGradients,
    rate="participation.rate",
    period="sync.period",
    levels="codec.levels",
    blocks="codec.blocks",
)
def ofediq(
    step: mx.AnyStep,
    rate: Any = 1.0,
    period: int = 1,
    levels: int | None = None,
    blocks: int = 1,
    **parts: Unpack[ServerParts],
) -> SendGradients:
    r"""Clients are sampled with probability `rate` after every `period` steps, and send quantised gradients.

    `SendGradients` with the (s, b) quantiser: s is `levels`, b is `blocks`. ``rate=1, period=1`` without
    ``levels`` is FedOGD; ``period=1`` without ``levels`` is OFedAvg. `rate` is one number, or one for each
    client.

    >>> import mainstem as ms
    >>> plan = ms.plan(budget=0.01, parameters=650)
    >>> algorithm = ms.ofediq(step=0.1, rate=plan.rate, levels=plan.levels, blocks=plan.blocks)
    >>> algorithm.codec
    quantiser(levels=3, blocks=14)
    """
    if levels is None and blocks != 1:
        raise mx.check.refuse("ofediq", "blocks", "be left out where levels is", blocks)
    heard = mx.parts.bernoulli(rate)
    return SendGradients(
        mx.as_step("ofediq", "step", step),
        sync=mx.parts.every(period),
        participation=mx.parts.everyone() if heard.everyone else heard,
        codec=mx.parts.plain() if levels is None else mx.parts.quantiser(levels, blocks),
        **parts,
    )
