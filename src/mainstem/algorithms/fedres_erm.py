"""FedRes.ERM: server and clients minimise the loss over all their samples (Agarwal, Langford and Wei 2020)."""

from mainstem import extend as mx
from mainstem.algorithms.resolve import Resolve


@mx.preset(Resolve)
def fedres_erm(
    radius: float | None = None, capacity: int | None = None, simultaneous: bool = False
) -> Resolve:
    r"""The best model on all samples so far, given the newest model of the other side (Algorithms 1 and 2).

    .. math:: w_{i,t} = \arg\min_{|w| \le D} \sum_{s<t} \ell_{i,s}(w^g_{t-\beta}, w), \qquad
              w^g_{t+1} = \arg\min_{|w| \le D} \sum_i \sum_{s \le t-\alpha} \ell_{i,s}(w, w_{i,t-\alpha})

    A client sends its sample (global and local features, label) and the own model that predicted.
    Squared losses are solved in closed form from a triangular factor that does not grow. For other losses give
    `capacity`, the number of samples of each client: they are stored, so that memory grows with them, and
    each minimum is certified inside the ball of `radius`. `simultaneous` is Algorithm 6 of Appendix C,
    where a client minimises given the global model that predicted.

    >>> import mainstem as ms
    >>> world = ms.streams.residuals(clients=4, shared=3, own=2)
    >>> run = ms.simulate(ms.fedres_erm(radius=5), ms.problems.personal(3, 2), world, steps=60)
    >>> bool(run.loss[-20:].mean() < 0.1 * run.loss[:5].mean())
    True
    """
    return Resolve(radius, capacity, simultaneous)


@mx.preset(Resolve)
def fictitious_play(radius: float | None = None, capacity: int | None = None) -> Resolve:
    r"""The best model on all samples so far, given the other side's model *at* each sample (eqs. (5) and (6)).

    .. math:: w_{i,t+1} = \arg\min_w \sum_{s \le t} \ell_{i,s}(w^g_{s-\beta}, w), \qquad
              w^g_{t+1} = \arg\min_w \sum_i \sum_{s \le t-\alpha} \ell_{i,s}(w, w_{i,s})

    A client sends (global features, local prediction, label), as in FedRes.SGD. The two sides tend
    to block each other, and convergence can be very slow (Appendix C). `radius` and `capacity`
    are those of `fedres_erm`.

    >>> import mainstem as ms
    >>> world = ms.streams.residuals(clients=4, shared=3, own=2)
    >>> run = ms.simulate(ms.fictitious_play(), ms.problems.personal(3, 2), world, steps=50)
    >>> bool(run.loss[-10:].mean() < run.loss[:5].mean())
    True
    """
    return Resolve(radius, capacity, fictitious=True)
