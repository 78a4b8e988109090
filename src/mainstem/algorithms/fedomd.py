"""FedOMD: local mirror descent, models averaged now and then (Mitra, Hassani and Pappas 2021)."""

from collections.abc import Callable
from typing import Any, NamedTuple

from mainstem import check
from mainstem.base import (
    Algorithm,
    At,
    Codec,
    Collect,
    Collected,
    Gradient,
    Mirror,
    Params,
    Participation,
    Setting,
    Step,
    Sync,
)
from mainstem.parts.codec import plain
from mainstem.parts.collect import total
from mainstem.parts.mirror import euclidean
from mainstem.parts.participation import everyone
from mainstem.parts.step import as_step
from mainstem.parts.sync import every
from mainstem.spec import recorded


class Client(NamedTuple):
    """What a client needs for its next step."""

    params: Params  # x_i, the client's own model
    step: Any  # the state of its step-size rule


@recorded
def fedomd(
    step: Step | float | str,
    mirror: Mirror | None = None,
    sync: Sync | None = None,
    participation: Participation | None = None,
    codec: Codec | None = None,
    collect: Collect | None = None,
) -> Algorithm:
    r"""Each client takes mirror steps on its own losses; at a sync all take the mean of their models.

    Algorithm 1: client i decides with its own :math:`x_{i,t}` and moves to (eq. (3))

    .. math:: y_{i,t+1} = \arg\min_{x \in X} \langle \nabla \ell_{i,t}(x_{i,t}), x \rangle
              + B_\psi(x, x_{i,t}) / \eta_t,

    which becomes its next model (eq. (5)), unless step t is a sync: then the mean of those heard
    does, for all clients (eq. (4) and Section VII). `mirror` brings :math:`\psi` and X.

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
    step = as_step("fedomd", step)
    mirror = check.instance("fedomd", "mirror", mirror or euclidean(), Mirror, "euclidean()")
    sync = check.instance("fedomd", "sync", sync or every(1), Sync, "every(5)")
    heard = check.instance(
        "fedomd", "participation", participation or everyone(), Participation, "exactly(5)"
    )
    codec = check.instance("fedomd", "codec", codec or plain(), Codec, "plain()")
    collect = check.instance("fedomd", "collect", collect or total(), Collect, "median()")
    if step.coordinatewise and not mirror.separable:
        wanted = f"have one rate for all coordinates on the {mirror.domain.name}"
        raise check.refuse("fedomd", "step", wanted, step.spec)

    def start(params: Params, setting: Setting) -> tuple[Params, Callable[[Any], Client]]:
        first = mirror.start(params)
        return first, lambda k: Client(first, step.init(first))

    def model(client: Client) -> Params:
        return client.params

    def learn(client: Client, gradient: Gradient, seen: Any, at: At) -> Client:
        slope = gradient(client.params, seen)
        eta, state = step.rate(client.step, slope, at.t)
        return Client(mirror.step(client.params, slope, eta), state)

    def upload(client: Client, at: At) -> tuple[Client, Params, Any]:
        return client, client.params, 1.0

    def merge(server: Params, got: Collected, gradient: Gradient, t: Any) -> tuple[Params, Params]:
        mean = got.mean(otherwise=server)
        return mean, mean

    def download(client: Client, params: Params, gradient: Gradient, merged: Any) -> Client:
        return client._replace(params=params)

    return Algorithm(
        start,
        model,
        learn,
        upload,
        merge,
        download,
        sync=sync,
        participation=heard,
        codec=codec,
        collect=collect,
        domain=mirror.domain,
    )
