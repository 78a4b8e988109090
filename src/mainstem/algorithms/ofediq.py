"""OFedIQ: intermittent, quantised uploads (Kwon, Park and Hong 2023, Algorithm 2)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from mainstem import check
from mainstem.base import (
    Algorithm,
    At,
    Collect,
    Collected,
    Gradient,
    Params,
    Setting,
    Step,
    Traits,
    constant,
)
from mainstem.parts.codec import plain
from mainstem.parts.collect import total
from mainstem.parts.domain import everything
from mainstem.parts.participation import bernoulli
from mainstem.parts.quantiser import quantiser
from mainstem.parts.step import as_step
from mainstem.parts.sync import every
from mainstem.spec import recorded


class Client(NamedTuple):
    """What a client needs for its next step."""

    received: Params  # w, the last broadcast: what the client decides with
    local: Params  # theta_k, moved by every sample since then
    unsent: Params  # sum of the gradients since the previous sync step


@recorded
def ofediq(
    step: Step | float | str,
    rate: Any = 1.0,
    period: int = 1,
    levels: int | None = None,
    blocks: int = 1,
    collect: Collect | None = None,
) -> Algorithm:
    r"""Each client follows its stream from the last broadcast, and sometimes says where it went.

    With step :math:`\eta`, period L and rate :math:`p_k` (one, or one for each client), client k
    moves a local model that starts at the broadcast w (eqs. (6), (7)),

    .. math:: \theta_k \leftarrow \theta_k - \eta \nabla \ell(\theta_k; z_{k,t}),

    and after every L-th step, with probability :math:`p_k`, it sends the quantised sum of these
    gradients over :math:`p_k` (eq. (8)), from which the server makes the next broadcast (eq. (9)),

    .. math:: w \leftarrow w - \frac{\eta}{K} \sum_{k\ \mathrm{heard}} Q(g_k) / p_k.

    Decisions are always made with the last broadcast. ``rate=1, period=1`` without ``levels`` is
    FedOGD; ``period=1`` without ``levels`` is OFedAvg. Dividing by :math:`p_k` after the quantiser
    is the same as before it, since Q(c x) = c Q(x) for c > 0.

    >>> import mainstem as ms
    >>> plan = ms.plan(budget=0.01, parameters=650)
    >>> algorithm = ms.ofediq(step=0.1, rate=plan.rate, levels=plan.levels, blocks=plan.blocks)
    >>> algorithm.codec.spec
    quantiser(levels=3, blocks=14)
    """
    step = as_step("ofediq", step)
    if not step.schedule:
        raise check.refuse(
            "ofediq", "step", "depend on t alone (the server takes it too)", step.spec
        )
    chance = check.rates("ofediq", "rate", rate)
    period = check.integer("ofediq", "period", period, least=1)
    blocks = check.integer("ofediq", "blocks", blocks, least=1)
    if levels is None and blocks != 1:
        raise check.refuse("ofediq", "blocks", "be left out where levels is", blocks)
    collect = check.instance("ofediq", "collect", collect or total(), Collect, "median()")

    def start(params: Params, setting: Setting) -> tuple[Params, Callable[[Any], Client]]:
        return params, lambda k: Client(params, params, jnp.zeros_like(params))

    def model(client: Client) -> Params:
        return client.received

    def learn(client: Client, gradient: Gradient, seen: Any, at: At) -> Client:
        slope = gradient(client.local, seen)
        eta, _ = step.rate((), slope, at.t)
        return Client(client.received, client.local - eta * slope, client.unsent + slope)

    def upload(client: Client, at: At) -> tuple[Client, Params, Any]:
        inverse = constant(1 / chance)
        weight = inverse if inverse.ndim == 0 else inverse[at.k]
        return client._replace(unsent=jnp.zeros_like(client.unsent)), client.unsent, weight

    def merge(server: Params, got: Collected, gradient: Gradient, t: Any) -> tuple[Params, Params]:
        eta, _ = step.rate((), server, t)
        moved = server - eta / got.clients * got.sum
        return moved, moved

    def download(client: Client, params: Params, gradient: Gradient, merged: Any) -> Client:
        return Client(received=params, local=params, unsent=client.unsent)

    return Algorithm(
        start,
        model,
        learn,
        upload,
        merge,
        download,
        sync=every(period),
        participation=bernoulli(rate),
        codec=plain() if levels is None else quantiser(levels, blocks),
        collect=collect,
        domain=everything(),
        traits=Traits(
            decides_with_broadcast=True,
            forgets_unheard=True,
            sends_gradient_at_broadcast=period == 1,
        ),
    )
