"""Mini-batches: several steps of a stream as one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import At, Sample, Sampler, Stream
from mainstem.streams.split import EXAMPLE, Wrapped
from mainstem.value import integer, leaf, part, static, value


@value
class grouped(Sampler):
    """A batch of `size` samples of another sampler; those that a client has are first.

    >>> from mainstem.streams.generated import alternating
    >>> grouped(alternating(clients=3), 4).sample((), At(1, 0, random.root(0)), None).hidden.shape
    (4, 1)
    """

    of: Sampler = leaf()
    size: int = static()

    @property
    def batch(self) -> int | None:
        """The number of samples, where a client has all of them."""
        return self.size

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        def one(n: Any, piece: Any) -> Sample:
            here = At((at.t - 1) * self.size + n + 1, at.k, random.fold(at.key, n))
            return self.of.sample(piece, here, drawn)

        got = jax.vmap(one)(jnp.arange(self.size, dtype=jnp.int32), piece)
        if got.count is None:
            return got
        order = jnp.argsort(got.count <= 0, stable=True)
        shown, hidden = jax.tree.map(lambda x: x[order], (got.shown, got.hidden))
        return Sample(shown, hidden, jnp.sum(got.count > 0, dtype=jnp.int32))


@value
class in_batches(Wrapped):
    """`stream` in steps of `size` samples each, for `problems.batched`.

    A client without further samples has smaller batches. At the end of the stream, steps that do not fill a
    batch are left out.

    >>> import mainstem as ms
    >>> stream = in_batches(ms.streams.digits(clients=10), size=5)
    >>> problem = ms.problems.batched(ms.problems.softmax(64, 10))
    >>> bool(ms.simulate(ms.fedogd(0.5), problem, stream, steps=100).accuracy[-1] > 0.8)
    True
    """

    stream: Stream = part(Stream, EXAMPLE)
    size: int = integer(least=1)

    def admit(self) -> None:
        drawn = self.stream.drawn(0)
        if self.stream.device.batch is not None or (drawn and jax.tree.leaves(drawn.cycle)):
            wanted = "have one sample in a step, and no cycle"
            raise check.refuse("in_batches", "stream", wanted, self.stream)
        if self.steps == 0:
            wanted = f"be at most {self.stream.steps}, the steps of the stream"
            raise check.refuse("in_batches", "size", wanted, self.size)

    @property
    def steps(self) -> int | None:
        """The number of full batches; None: no end."""
        return None if self.stream.steps is None else self.stream.steps // self.size

    @property
    def exam(self) -> Any:
        """None: held-out samples are no batches."""
        return None

    @property
    def minimiser(self) -> Any:
        """None: it is that of other steps."""
        return None

    @property
    def device(self) -> Sampler:
        return grouped(self.stream.device, self.size)

    def chunk(self, seed: int, first: int, last: int) -> Any:
        size = self.size
        pieces = self.stream.chunk(seed, (first - 1) * size + 1, last * size)

        def split(x: Any) -> np.ndarray:  # [steps, clients, size, ...]
            return np.swapaxes(np.reshape(x, (-1, size, *np.shape(x)[1:])), 1, 2)

        return jax.tree.map(split, pieces)
