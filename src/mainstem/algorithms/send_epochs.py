"""SendEpochs: clients send models after unequal numbers of epochs.

The general form of dynamic FedAvg (Rizk, Vlaski and Sayed 2020).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import extend as mx
from mainstem.parts.minibatch import minibatch


class Client(NamedTuple):
    """What a client needs for its next step."""

    received: mx.Params  # w, the last broadcast: what the client decides with
    local: mx.Params  # w_k, after its epochs


def _counts(owner: str, name: str, given: Any) -> Any:
    numbers = mx.check.counts(owner, name, given)
    return tuple(numbers.tolist()) if numbers.ndim else int(numbers)


@mx.value
class SendEpochs(mx.ModelAveraging):
    """Clients send models after some epochs on the samples that they hold; see `dynamic_fedavg`.

    >>> SendEpochs(step=0.1, epochs=[1, 2])
    dynamic_fedavg(step=0.1, epochs=[1, 2])
    """

    step: mx.Step = mx.step_size()
    epochs: Any = mx.static(default=1, checked=_counts)  # static: the length of a loop
    batch: Any = mx.static(default=None, checked=_counts)  # static: the shape of a mini-batch
    incremental: bool = mx.flag(default=True)
    normalised: bool = mx.flag(default=True)
    sync: mx.Sync = mx.any_sync()
    participation: mx.Participation = mx.any_participation()
    codec: mx.Codec = mx.any_codec()
    collect: mx.Collect = mx.any_sum()
    downlink: mx.Codec | None = mx.any_downlink()

    family = "dynamic_fedavg"

    def admit(self) -> None:
        if not self.step.schedule:
            owner = type(self).__name__
            raise mx.check.refuse(owner, "step", "depend on t alone", self.step)

    @property
    def domain(self) -> mx.Domain:
        return mx.parts.everything()

    @property
    def traits(self) -> mx.Traits:
        return mx.Traits(decides_with_broadcast=True, forgets_unheard=True)

    def check(self, problem: mx.Problem, samples: mx.Sample, steps: int) -> None:
        owner, clients = self.call()[0], len(jax.tree.leaves(samples)[0])
        for name in ("epochs", "batch"):
            given = getattr(self, name)
            if np.ndim(given) and np.size(given) != clients:
                wanted = f"have one entry for each of {clients} clients"
                raise mx.check.refuse(owner, name, wanted, given)
        if self.batch is not None:
            _held(owner, np.broadcast_to(self.batch, clients), samples)

    def start(
        self, params: mx.Params, setting: mx.Setting
    ) -> tuple[mx.Params, Callable[[Any], Client]]:
        return params, lambda k: Client(params, params)

    def model(self, client: Client) -> mx.Params:
        return client.received

    def learn(self, client: Client, gradient: mx.Gradient, seen: Any, at: mx.At) -> Client:
        draws = self.batch is not None and isinstance(seen, mx.Batch)
        eta, _ = self.step.rate((), client.received, at.t)
        mine = mx.of_client(jnp.asarray(self.epochs, jnp.int32), at.k)
        scale = eta / mine if self.normalised else eta

        def epoch(e: Any, local: mx.Params) -> mx.Params:
            some = minibatch(seen, self.batch, at, e) if draws else seen
            slope = gradient(local if self.incremental else client.received, some)
            return jnp.where(e < mine, local - scale * slope, local)

        longest = int(np.max(self.epochs))
        return client._replace(local=jax.lax.fori_loop(0, longest, epoch, client.local))

    def upload(self, client: Client, at: mx.At) -> tuple[Client, mx.Params, Any]:
        return client, client.local, 1.0

    def download(
        self, client: Client, params: mx.Params, gradient: mx.Gradient, merged: Any, t: Any
    ) -> Client:
        return Client(params, params)


def _held(owner: str, sizes: np.ndarray, samples: mx.Sample) -> None:
    """Raises `BadParameter` if a mini-batch is larger than the number of samples that its client holds."""
    rows = jax.tree.leaves(samples.hidden)[0]
    most = rows.shape[1] if rows.ndim > 1 else 1
    held = np.broadcast_to(most if samples.count is None else samples.count, sizes.shape)
    for k in np.flatnonzero((sizes > held) & (held > 0)):
        wanted = f"be at most the {held[k]} samples that client {k} holds"
        raise mx.check.refuse(owner, "batch", wanted, int(sizes[k]))
