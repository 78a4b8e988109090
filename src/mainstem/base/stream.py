"""What arrives, and how a client gets its share of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base.values import SEVERAL, At, Form, Params, Sample
from mainstem.spec import UNRECORDED, Spec


class Stream(NamedTuple):
    """What arrives. `chunk` is what the host sends ahead, `sample` what the device makes of it.

    A dataset stays on the device (`resident`) and its chunks are indices; a generator sends
    nothing; a file sends the rows themselves.
    """

    clients: int
    steps: int | None  # None: endless
    resident: Any
    chunk: Callable[[int, int, int], Any]  # (seed, first, last) -> leaves [steps, clients, ...]
    sample: Callable[[Any, Any, At], Sample]  # (resident, the piece of this step and client, at)
    rows: Callable[[], Sample | None]  # the distinct samples, where a piece is an index into them
    expected: Callable[[Any, Any], Form] | None = None  # (t, k) -> the expected loss, if known
    targets: Callable[[], np.ndarray] | None = None  # all that is hidden, if it can be looked at
    # seed -> what is drawn once for a whole run; `sample` then gets (resident, its share of it)
    drawn: Callable[[int], "Drawn"] | None = None
    # (resident, piece, t) -> the minimiser of the aggregate risk at step t - 1, if known
    minimiser: Callable[[Any, Any, Any], Params] | None = None
    exam: Callable[[int], "Exam"] | None = None  # seed -> samples held out, if there are any
    spec: Spec = UNRECORDED

    def known(self, seed: int) -> Any:
        """What all samples of a run with this seed are made from."""
        return self.resident if self.drawn is None else (self.resident, self.drawn(seed))

    def samples(self, known: Any, pieces: Any, at: At) -> Sample:
        """The samples of the clients `at.k`, in order; `pieces` has their axis first."""
        return sampled(self.sample, self.drawn is not None)(known, pieces, at)


class Drawn(NamedTuple):
    """What a run draws once. `sample` gets its client's and its step's share of it."""

    common: Any = ()  # the same for all
    each: Any = ()  # leaves [clients, ...]
    cycle: Any = ()  # leaves [n, clients, ...]: step t has the ((t - 1) mod n)-th


def sampled(sample: Callable[..., Sample], drawn: bool) -> Callable[[Any, Any, At], Sample]:
    """A stream's `sample` for several clients at once."""

    def one(known: Any, piece: Any, at: At) -> Sample:
        return _present(sample(known, piece, at))

    def several(known: Any, pieces: Any, at: At) -> Sample:
        if not drawn:
            return jax.vmap(one, in_axes=(None, 0, SEVERAL))(known, pieces, at)
        resident, run = known

        def now(x: Any) -> Any:
            return jax.lax.dynamic_index_in_dim(x, (at.t - 1) % len(x), keepdims=False)

        def asked(x: Any) -> Any:
            return x if len(x) == len(at.k) else x[at.k]  # as many as there are: all, in order

        turn = jax.tree.map(now, run.cycle)
        run = Drawn(run.common, *jax.tree.map(asked, (run.each, turn)))
        axes = (None, Drawn(None, 0, 0)), 0, SEVERAL
        return jax.vmap(one, in_axes=axes)((resident, run), pieces, at)

    return several


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
