"""Dynamic FedAvg: uneven epochs and batches, a world that moves (Rizk, Vlaski and Sayed 2020)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import (
    Algorithm,
    At,
    Batch,
    Collected,
    Gradient,
    Params,
    Participation,
    Problem,
    Sample,
    Setting,
    Step,
    Traits,
)
from mainstem.parts.codec import plain
from mainstem.parts.collect import total
from mainstem.parts.domain import everything
from mainstem.parts.participation import everyone
from mainstem.parts.step import as_step
from mainstem.parts.sync import every
from mainstem.random import Key
from mainstem.spec import recorded


class Client(NamedTuple):
    """What a client needs for its next step."""

    received: Params  # w, the last broadcast: what the client decides with
    local: Params  # w_k, after its epochs


@recorded
def dynamic_fedavg(
    step: Step | float | str,
    epochs: Any = 1,
    batch: Any = None,
    participation: Participation | None = None,
    incremental: bool = True,
    normalised: bool = True,
) -> Algorithm:
    r"""In each step the agents heard make some epochs on what they hold, and their models are averaged.

    Algorithm 1: agent k starts at the broadcast w and makes :math:`E_k` steps, each on a fresh
    mini-batch of :math:`B_k` of its samples, drawn without replacement (eq. (11)),

    .. math:: w_{k,e} = w_{k,e-1} - \frac{\mu}{E_k B_k} \sum_{b \in \mathcal{B}_{k,e}}
              \nabla Q_k(w_{k,e-1}; x_{k,b}),

    and w becomes the mean over the agents heard (eq. (12)). `epochs` and `batch` are one number, or
    one for each agent; without `batch` an epoch takes all samples. ``incremental=False`` takes all
    gradients at the broadcast, eq. (7); ``normalised=False`` leaves out the :math:`1/E_k`, which
    biases the limit towards agents with more epochs. Streams that bring many samples a step go with
    `problems.batched`.

    >>> import mainstem as ms
    >>> algorithm = ms.dynamic_fedavg(
    ...     step=0.1, epochs=[1, 5, 10], batch=10, participation=ms.parts.exactly(2)
    ... )
    >>> stream = ms.streams.walking(clients=3, holds=50)
    >>> problem = ms.problems.batched(ms.problems.logistic(2, ridge=2.0, intercept=False))
    >>> run = ms.simulate(algorithm, problem, stream, steps=50, measure=["deviation"])
    >>> bool(run.msd[-1] < run.msd[0])
    True
    """
    step = as_step("dynamic_fedavg", step)
    if not step.schedule:
        raise check.refuse("dynamic_fedavg", "step", "depend on t alone", step.spec)
    passes = check.counts("dynamic_fedavg", "epochs", epochs)
    sizes = None if batch is None else check.counts("dynamic_fedavg", "batch", batch)
    heard = check.instance(
        "dynamic_fedavg", "participation", participation or everyone(), Participation, "exactly(5)"
    )

    def start(params: Params, setting: Setting) -> tuple[Params, Callable[[Any], Client]]:
        return params, lambda k: Client(params, params)

    def model(client: Client) -> Params:
        return client.received

    def learn(client: Client, gradient: Gradient, seen: Any, at: At) -> Client:
        drawn = None if not isinstance(seen, Batch) else sizes
        eta, _ = step.rate((), client.received, at.t)
        mine = _of(passes, at.k)
        scale = eta / mine if normalised else eta

        def epoch(e: Any, local: Params) -> Params:
            some = seen if drawn is None else minibatch(seen, drawn, at, e)
            slope = gradient(local if incremental else client.received, some)
            return jnp.where(e < mine, local - scale * slope, local)

        return client._replace(local=jax.lax.fori_loop(0, int(passes.max()), epoch, client.local))

    def upload(client: Client, at: At) -> tuple[Client, Params, Any]:
        return client, client.local, 1.0

    def merge(server: Params, got: Collected, gradient: Gradient, t: Any) -> tuple[Params, Params]:
        mean = got.mean(otherwise=server)
        return mean, mean

    def download(client: Client, params: Params, gradient: Gradient, merged: Any) -> Client:
        return Client(params, params)

    def fits(problem: Problem, samples: Sample, steps: int) -> None:
        clients = len(jax.tree.leaves(samples)[0])
        for name, given in (("epochs", passes), ("batch", sizes)):
            if given is not None and given.ndim and given.size != clients:
                wanted = f"have one entry for each of {clients} clients"
                raise check.refuse("dynamic_fedavg", name, wanted, given)
        if sizes is not None:
            _fits(np.broadcast_to(sizes, clients), samples)

    return Algorithm(
        start,
        model,
        learn,
        upload,
        merge,
        download,
        sync=every(1),
        participation=heard,
        codec=plain(),
        collect=total(),
        domain=everything(),
        traits=Traits(decides_with_broadcast=True, forgets_unheard=True),
        check=fits,
    )


def _of(numbers: np.ndarray, k: Any) -> Any:
    """Client k's number, or everybody's."""
    given = jnp.asarray(numbers, jnp.int32)
    return given if given.ndim == 0 else given[k]


def minibatch(held: Batch, sizes: np.ndarray, at: At, e: Any) -> Batch:
    """The mini-batch of epoch e: client k's size of what it holds, without replacement."""
    size = _of(sizes, at.k)
    drawn = chosen(random.fold(at.key, e), held.weights > 0, size)
    return held._replace(weights=drawn.astype(held.weights.dtype) / size)


def chosen(key: Key, real: Any, size: Any) -> jax.Array:
    """Which of the `real` samples are in a random set of that size: those with the smallest draws.

    The last bits of a draw are its place, so that no two are equal; the bound that `size` of them
    lie below is found bit by bit, which is faster than sorting.
    """
    places = max(1, (len(real) - 1).bit_length())
    draws = (random.bits(key, real.shape) >> (places + 1)) << places
    draws = draws | jnp.arange(len(real), dtype=jnp.uint32)

    def raised(n: int, bound: Any) -> Any:
        higher = bound | (jnp.uint32(2**30) >> jnp.uint32(n))
        below = jnp.sum(real & (draws < higher), dtype=jnp.int32)
        return jnp.where(below <= size, higher, bound)

    return real & (draws < jax.lax.fori_loop(0, 31, raised, jnp.uint32(0)))


def _fits(sizes: np.ndarray, samples: Sample) -> None:
    """Refuse a mini-batch larger than what its client holds."""
    leaf = jax.tree.leaves(samples.hidden)[0]
    most = leaf.shape[1] if leaf.ndim > 1 else 1
    held = np.broadcast_to(most if samples.count is None else samples.count, sizes.shape)
    for k in np.flatnonzero((sizes > held) & (held > 0)):
        wanted = f"be at most the {held[k]} samples that client {k} holds"
        raise check.refuse("dynamic_fedavg", "batch", wanted, int(sizes[k]))
