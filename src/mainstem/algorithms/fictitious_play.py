"""Fictitious play: FedRes.ERM that keeps old partners, and why not to (Agarwal et al. 2020, App. C)."""

from typing import Any

from mainstem.algorithms.fedres_erm import Telling, solving
from mainstem.base import Algorithm, Pair, Params, Residual, joined
from mainstem.parts.recall import Loss
from mainstem.spec import recorded


@recorded
def fictitious_play(radius: float | None = None, keep: int | None = None) -> Algorithm:
    r"""Each side is best against what the other side *was* at each sample (eqs. (5) and (6)).

    .. math:: w_{i,t+1} = \arg\min_w \sum_{s \le t} \ell_{i,s}(w^g_{s-\beta}, w), \qquad
              w^g_{t+1} = \arg\min_w \sum_i \sum_{s \le t-\alpha} \ell_{i,s}(w, w_{i,s})

    A client sends (global features, local prediction, label), as in FedRes.SGD. The two sides tend
    to lock each other, and convergence can be very slow: Appendix C shows it. `radius` and `keep`
    are those of `fedres_erm`.

    >>> import mainstem as ms
    >>> world = ms.streams.residuals(clients=4, shared=3, own=2)
    >>> run = ms.simulate(ms.fictitious_play(), ms.problems.personal(3, 2), world, steps=50)
    >>> bool(run.loss[-10:].mean() < run.loss[:5].mean())
    True
    """
    told = Telling(mine=_local, theirs=_global, client=_own, server=_shared, sends_model=False)
    return solving("fictitious_play", told, radius, keep, simultaneous=False)


def _global(known: Residual, pair: Pair, seen: Any) -> Params:
    """(global features, local prediction, label)."""
    return known.told(pair.own, seen)


def _local(known: Residual, pair: Pair, seen: Any) -> Params:
    """(local features, global prediction, label)."""
    x, local, label = known.read(seen)
    return joined(local, known.shared(pair.shared, x), label)


def _shared(known: Residual) -> Loss:
    return lambda mine, _, told: known.penalty(known.shared(mine, told[:-2]) + told[-2], told[-1])


def _own(known: Residual) -> Loss:
    return lambda mine, _, told: known.penalty(known.own(mine, told[:-2]) + told[-2], told[-1])
