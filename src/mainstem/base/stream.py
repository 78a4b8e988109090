"""What arrives, and how a client gets its share of it."""

import abc
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base.types import SEVERAL, At, Sample
from mainstem.value import Value


class Sampler(Value):
    """What the device makes samples with: the part of a stream that a compiled program is given."""

    @property
    def expected(self) -> Any:
        """(t, k) -> the expected loss as a `Form`, if it is known."""
        return None

    @property
    def minimiser(self) -> Any:
        """(drawn, piece of a client, t) -> the minimiser of the aggregate risk at step t - 1, if it is known."""
        return None

    @abc.abstractmethod
    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        """What client `at.k` gets at step `at.t`, from its piece of the chunk and its share of what was drawn."""

    def samples(self, pieces: Any, at: At, drawn: Any) -> Sample:
        """The samples of the clients `at.k`, in order; `pieces` has their axis first."""

        def one(piece: Any, at: At, drawn: Any) -> Sample:
            return _present(self.sample(piece, at, drawn))

        if drawn is None:
            return jax.vmap(one, in_axes=(0, SEVERAL, None))(pieces, at, None)

        def now(x: Any) -> Any:
            return jax.lax.dynamic_index_in_dim(x, (at.t - 1) % len(x), keepdims=False)

        def asked(x: Any) -> Any:
            return x if len(x) == len(at.k) else x[at.k]  # as many as there are: all, in order

        turn = jax.tree.map(now, drawn.cycle)
        share = Drawn(drawn.common, *jax.tree.map(asked, (drawn.each, turn)))
        return jax.vmap(one, in_axes=(0, SEVERAL, Drawn(None, 0, 0)))(pieces, at, share)


class Stream(Sampler):
    """What arrives: `chunk` is what the host sends ahead, `sample` what the device makes of it.

    The rows of a dataset stay on the device and its chunks are indices; a generator sends nothing; a
    file sends the rows themselves.
    """

    @property
    @abc.abstractmethod
    def clients(self) -> int:
        """How many there are."""

    @property
    def steps(self) -> int | None:
        """How long it is; None: endless."""
        return None

    @property
    def targets(self) -> Any:
        """() -> all that is hidden, if it can be looked at."""
        return None

    @property
    def exam(self) -> Any:
        """seed -> samples held out, an `Exam`, if there are any."""
        return None

    @property
    def device(self) -> Sampler:
        """What makes samples of pieces; the stream itself, unless it holds more than that."""
        return self

    def chunk(self, seed: int, first: int, last: int) -> Any:
        """What the host sends for these steps: leaves [steps, clients, ...]."""
        return ()

    def drawn(self, seed: int) -> "Drawn | None":
        """What is drawn once for a whole run with this seed, if anything is."""
        return None

    def rows(self) -> Sample | None:
        """The distinct samples, where a piece is an index into them."""
        return None


class Drawn(NamedTuple):
    """What a run draws once. `sample` gets its client's and its step's share of it."""

    common: Any = ()  # the same for all
    each: Any = ()  # leaves [clients, ...]
    cycle: Any = ()  # leaves [n, clients, ...]: step t has the ((t - 1) mod n)-th


def _present(sample: Sample) -> Sample:
    """Where nothing came there may be anything, even NaN: it is read as zeros."""
    if sample.count is None:
        return sample
    here = jnp.asarray(sample.count) > 0

    def kept(x: Any) -> Any:
        return jnp.where(here, x, jnp.zeros_like(x))

    return sample._replace(**jax.tree.map(kept, {"shown": sample.shown, "hidden": sample.hidden}))


class Exam(NamedTuple):
    """Samples held out of a stream, the same for all clients, and how each client is judged by them."""

    shown: Any  # leaves [n, ...]
    hidden: np.ndarray  # [clients, n], the answer in each client's own task
    weights: np.ndarray  # [clients, n], summing to 1 for each client; 0: not in its task
