"""Streams: the base class, and how the samples of a client are made."""

import abc
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base.types import SEVERAL, At, Sample
from mainstem.value import Value

SHOWN = 5, 8  # rows and columns of a table in a notebook


class Sampler(Value):
    """The part of a stream that a compiled program gets, to make samples on the device."""

    @property
    def expected(self) -> Any:
        """(t, k) -> the expected loss as a `Form`, if it is known; else None."""
        return None

    @property
    def minimiser(self) -> Any:
        """(drawn, piece of a client, t) -> the minimiser of the aggregate risk at step t - 1; None: not known."""
        return None

    @property
    def batch(self) -> int | None:
        """The number of samples in each step, if a sample is a batch without a `count`; None: one sample."""
        return None

    @abc.abstractmethod
    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        """The sample of client `at.k` at step `at.t`, from its piece of the chunk and its share of `drawn`."""

    def samples(self, pieces: Any, at: At, drawn: Any) -> Sample:
        """The samples of the clients `at.k`, in order; the first axis of `pieces` is the clients."""

        def one(piece: Any, at: At, drawn: Any) -> Sample:
            return _present(self.sample(piece, at, drawn))

        if drawn is None:
            return jax.vmap(one, in_axes=(0, SEVERAL, None))(pieces, at, None)

        def now(x: Any) -> Any:
            return jax.lax.dynamic_index_in_dim(x, (at.t - 1) % len(x), keepdims=False)

        def asked(x: Any) -> Any:
            return x if len(x) == len(at.k) else x[at.k]  # the same length: all clients, in order

        turn = jax.tree.map(now, drawn.cycle)
        share = Drawn(drawn.common, *jax.tree.map(asked, (drawn.each, turn)))
        return jax.vmap(one, in_axes=(0, SEVERAL, Drawn(None, 0, 0)))(pieces, at, share)


class Stream(Sampler):
    """A stream of samples: the host sends a `chunk` ahead, and the device makes each `sample` from it.

    A generator sends nothing, and neither does a dataset: its rows are on the device, which computes
    whose they are. A file sends the rows themselves.
    """

    @property
    @abc.abstractmethod
    def clients(self) -> int:
        """The number of clients."""

    @property
    def steps(self) -> int | None:
        """The number of steps; None: no end."""
        return None

    @property
    def targets(self) -> Any:
        """() -> all that is hidden, if it is available; else None."""
        return None

    @property
    def largest_class(self) -> int | None:
        """The largest class of a sample, where it is known although `targets` is not; else None."""
        return None

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The label of each class in the data, if it is not the number of the class."""
        return None

    @property
    def names(self) -> tuple[str, ...] | None:
        """The name of each client, if the data names them."""
        return None

    @property
    def exam(self) -> Any:
        """seed -> held-out samples, an `Exam`, if there are any; else None."""
        return None

    @property
    def device(self) -> Sampler:
        """The sampler for the device: the stream itself, unless it contains more than that."""
        return self

    def chunk(self, seed: int, first: int, last: int) -> Any:
        """What the host sends for these steps: leaves [steps, clients, ...]."""
        return ()

    def drawn(self, seed: int) -> "Drawn | None":
        """What is drawn once for a run with this seed; None: nothing."""
        return None

    def rows(self) -> Sample | None:
        """The distinct samples, if each sample is one of a few rows in memory; else None."""
        return None

    def places(self, seed: int, first: int, last: int) -> np.ndarray | None:
        """The place in `rows` of each sample of these steps [steps, clients], -1: none; None without `rows`."""
        return None

    def _repr_markdown_(self) -> str:
        """The stream in a notebook: its size, and its first rows if it has a table in memory."""
        length = "without end" if self.steps is None else f"{self.steps} steps"
        made = f"{super()._repr_markdown_()}\n\n{self.clients} clients, {length}"
        rows = self.rows()
        if rows is None or np.ndim(rows.shown) != 2 or np.ndim(rows.hidden) != 1:
            return made
        width = min(SHOWN[1], np.shape(rows.shown)[1])
        dots = ["..."] * (width < np.shape(rows.shown)[1])
        lines = [
            [*map(str, range(width)), *dots, "hidden"],
            ["---"] * (width + len(dots) + 1),
            *(
                [*(f"{number:.4g}" for number in row[:width].tolist()), *dots, f"{hidden:.4g}"]
                for row, hidden in zip(
                    np.asarray(rows.shown[: SHOWN[0]]),
                    rows.hidden[: SHOWN[0]].tolist(),
                    strict=True,
                )
            ),
        ]
        return "\n".join([made, "", *(f"| {' | '.join(line)} |" for line in lines)])


class Drawn(NamedTuple):
    """What a run draws once. `sample` gets the share of its client and its step."""

    common: Any = ()  # the same for all
    each: Any = ()  # leaves [clients, ...]
    cycle: Any = ()  # leaves [n, clients, ...]: step t has the ((t - 1) mod n)-th


def _present(sample: Sample) -> Sample:
    """Sets the arrays of an absent sample to zero: they may contain anything, even NaN."""
    if sample.count is None:
        return sample
    here = jnp.asarray(sample.count) > 0

    def kept(x: Any) -> Any:
        return jnp.where(here, x, jnp.zeros_like(x))

    return sample._replace(**jax.tree.map(kept, {"shown": sample.shown, "hidden": sample.hidden}))


class Exam(NamedTuple):
    """Held-out samples of a stream, the same for all clients, with targets and weights for each client."""

    shown: Any  # leaves [n, ...]
    hidden: np.ndarray  # [clients, n], the target in each client's own task
    weights: np.ndarray  # [clients, n], summing to 1 for each client; 0: not in its task
