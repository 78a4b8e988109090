"""FedRes.SGD: a shared and an own model, aligned over slow links (Agarwal, Langford and Wei 2020)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mainstem import check
from mainstem.base import (
    Algorithm,
    At,
    Collected,
    Domain,
    Gradient,
    Pair,
    Params,
    Problem,
    Residual,
    Sample,
    Setting,
    Step,
    Traits,
    joined,
)
from mainstem.errors import BadParameter
from mainstem.parts import late as lates
from mainstem.parts.codec import plain
from mainstem.parts.collect import each, total
from mainstem.parts.late import Late
from mainstem.parts.mirror import euclidean
from mainstem.parts.participation import everyone
from mainstem.parts.step import as_step
from mainstem.parts.sync import every
from mainstem.spec import recorded

VARIANTS = ("aligned", "on_arrival", "undelayed")
MESSAGES = ("gradient", "sample")


class Client(NamedTuple):
    """What a client needs for its next step."""

    received: Params  # w^g, the last broadcast
    own: Params  # w_i
    told: Any  # what it will say: samples of this period, or the shared gradient
    slope: Params  # the own gradient of this period
    news: Any  # how many samples that is
    late: Late  # own gradients whose message has not come back
    step: Any  # the state of its step-size rule


class Server(NamedTuple):
    """What the server needs for its next step."""

    params: Params  # w^g
    step: Any


@recorded
def fedres_sgd(
    step: Step | float | str,
    own_step: Step | float | str | None = None,
    domain: Domain | None = None,
    period: int = 1,
    message: str = "sample",
    variant: str = "aligned",
) -> Algorithm:
    r"""Server and client each follow their own gradient of one loss, taken where it was suffered.

    Client i decides with the pair :math:`(w^g_{t-\beta}, w_{i,t})`, and (Algorithms 3 and 4)

    .. math:: w_{i,t} = \Pi_D(w_{i,t-1} - \eta_i \nabla^l_{i,t-\tau_i}), \qquad
              w^g_t = \Pi_D\Big(w^g_{t-1} - \eta \sum_i \nabla^g_{i,t-\alpha_i}\Big),

    all gradients at the pair that decided. The client waits with its own gradient until the
    broadcast that contains its message has come back, one round trip later. `step` is the server's,
    `own_step` the clients' (the same if left out), `domain` holds each of the two models.

    The `message` is the sample as the server needs it (global features, local prediction, label),
    or the gradient, which is smaller wherever the shared part has no more numbers than that times
    `period` (Section 4: the mean loss of that many steps, one exchange for them all). `variant`
    gives the two mis-aligned rules of Section 3.2.1: "on_arrival" (the server takes the gradient at
    its current model, the client steps at once) and "undelayed" (aligned gradients, but the client
    steps at once).

    >>> import mainstem as ms
    >>> problem = ms.problems.personal(shared=4, own=2)
    >>> world = ms.streams.residuals(clients=10, shared=4, own=2)
    >>> run = ms.simulate(ms.fedres_sgd(step=0.02), problem, world, steps=300)
    >>> bool(run.loss[-50:].mean() < 0.3 * run.loss[:10].mean())
    True
    """
    return residual_sgd("fedres_sgd", step, own_step or step, domain, period, message, variant)


def residual_sgd(
    owner: str,
    step: Step | float | str,
    own_step: Step | float | str | None,
    domain: Domain | None,
    period: int,
    message: str,
    variant: str,
) -> Algorithm:
    """FedRes.SGD; without an `own_step` the clients' own models are zero and go unsaid."""
    mirror = euclidean(domain)
    rule = as_step(owner, step)
    own_rule = None if own_step is None else as_step(owner, own_step)
    for name, chosen in (("step", rule), ("own_step", own_rule)):
        if chosen is not None and chosen.coordinatewise and not mirror.separable:
            wanted = f"have one rate for all coordinates on the {mirror.domain.name}"
            raise check.refuse(owner, name, wanted, chosen.spec)
    period = check.integer(owner, "period", period, least=1)
    check.one_of(owner, "message", message, MESSAGES)
    check.one_of(owner, "variant", variant, VARIANTS)
    if variant == "on_arrival" and message == "gradient":
        raise check.refuse(owner, "message", "be sample: the server takes the gradient", message)
    sends_sample, waits = message == "sample", variant == "aligned"

    def told_by(gradient: Gradient, pair: Pair, seen: Any) -> Params:
        known = known_to(owner, gradient)
        if own_rule is not None:
            return known.told(pair.own, seen)
        x, _, label = known.read(seen)
        return joined(x, label)

    def slope_of(gradient: Gradient, params: Params, told: Params) -> Params:
        """The shared gradient, as the server forms it from what it was told; nothing told, no slope."""
        known = known_to(owner, gradient)
        width = known.widths[0]
        x, label = told[:width], told[-1]
        local = 0.0 if own_rule is None else told[width]
        real = label != unsaid(label.dtype)

        def loss(params: Params) -> Any:
            return known.penalty(known.shared(params, x) + local, jnp.where(real, label, 0))

        return jnp.where(real, jax.grad(loss)(params), 0)

    def silence(setting: Setting, shared: Params) -> Any:
        if not sends_sample:
            return jnp.zeros_like(shared)
        width = known_to(owner, setting.gradient).widths[0] + (own_rule is not None)
        nothing = jnp.zeros((period, width + 1), shared.dtype)
        return nothing.at[:, -1].set(unsaid(shared.dtype))

    def start(params: Pair, setting: Setting) -> tuple[Server, Callable[[Any], Client]]:
        shared = mirror.start(params.shared)
        own = jnp.zeros_like(params.own) if own_rule is None else mirror.start(params.own)
        first = Client(
            shared,
            own,
            told=silence(setting, shared),
            slope=jnp.zeros_like(own),
            news=jnp.int32(0),
            late=lates.nothing(setting.pending if waits else 0, own),
            step=() if own_rule is None else own_rule.init(own),
        )
        return Server(shared, rule.init(shared)), lambda k: first

    def model(client: Client) -> Pair:
        return Pair(client.received, client.own)

    def learn(client: Client, gradient: Gradient, seen: Any, at: At) -> Client:
        pair = model(client)
        slope = gradient(pair, seen)
        if sends_sample:
            new = told_by(gradient, pair, seen)
            told = new[None] if period == 1 else client.told.at[(at.t - 1) % period].set(new)
        else:
            told = client.told + slope.shared / period
        moved = client.slope + slope.own / period
        return client._replace(told=told, slope=moved, news=client.news + 1)

    def stepped(client: Client, slope: Params, t: Any, whether: Any) -> Client:
        """The own model after one of its gradients."""
        if own_rule is None:
            return client
        eta, state = own_rule.rate(client.step, slope, t)
        own = jnp.where(whether, mirror.step(client.own, slope, eta), client.own)
        state = jax.tree.map(lambda new, old: jnp.where(whether, new, old), state, client.step)
        return client._replace(own=own, step=state)

    def upload(client: Client, at: At) -> tuple[Client, Params, Any]:
        spoke = client.news > 0
        if waits:
            after = client._replace(late=lates.put(client.late, client.slope, at.t, spoke))
        else:
            after = stepped(client, client.slope, at.t, spoke)
        nothing = jnp.zeros_like(client.told)
        if sends_sample:
            nothing = nothing.at[:, -1].set(unsaid(nothing.dtype))
        after = after._replace(
            told=nothing, slope=jnp.zeros_like(client.slope), news=jnp.zeros_like(client.news)
        )
        return after, jnp.ravel(client.told), spoke.astype(client.own.dtype)

    def merge(server: Server, got: Collected, gradient: Gradient, t: Any) -> tuple[Server, Params]:
        slope = formed(server, got, gradient) if sends_sample else got.sum
        eta, state = rule.rate(server.step, slope, t)
        moved = Server(mirror.step(server.params, slope, eta), state)
        server = jax.tree.map(lambda new, old: jnp.where(got.count > 0, new, old), moved, server)
        return server, server.params

    def formed(server: Server, got: Collected, gradient: Gradient) -> Params:
        """The sum of the shared gradients, each at the model that its sender had."""
        assert got.each is not None
        told = got.each.bodies.reshape(len(got.each.bodies), period, -1)
        over_period = jax.vmap(lambda base, told: slope_of(gradient, base, told), (None, 0))
        if variant == "on_arrival":
            slopes = jax.vmap(over_period, (None, 0))(server.params, told)
        else:
            slopes = jax.vmap(over_period)(got.each.base, told)
        heard = got.each.weights > 0
        return jnp.sum(jnp.where(heard[:, None, None], slopes, 0), axis=(0, 1)) / period

    def download(client: Client, params: Params, gradient: Gradient, merged: Any) -> Client:
        client = client._replace(received=params)
        if not waits:
            return client

        def waiting(client: Client) -> Any:
            return jnp.any(lates.due(client.late, merged))

        def back(client: Client) -> Client:
            slope, when, rest = lates.first(client.late, merged)
            return stepped(client, slope, when, waiting(client))._replace(late=rest)

        if client.late.when.size == 1:  # at most one can be due
            return back(client)
        return jax.lax.while_loop(waiting, back, client)

    def fits(problem: Problem, samples: Sample, steps: int) -> None:
        if sends_sample:
            known_to(owner, problem)

    return Algorithm(
        start,
        model,
        learn,
        upload,
        merge,
        download,
        sync=every(period),
        participation=everyone(),
        codec=plain(),
        collect=each() if sends_sample else total(),
        domain=mirror.domain,
        traits=Traits(carries=("own", "step")),
        personal=True,
        check=fits,
    )


def unsaid(dtype: Any) -> Any:
    """The label of a sample that was not seen: finite, so that messages are, and no label."""
    return jnp.finfo(dtype).max


def known_to(owner: str, of: Gradient | Problem) -> Residual:
    """How the problem's prediction is a sum; refused if it is not."""
    if of.residual is None:
        wanted = "predict by the sum of two parts, such as problems.personal(8, 8)"
        raise BadParameter(f"{owner}: to send samples, the problem must {wanted}")
    return of.residual
