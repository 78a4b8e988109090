"""A stream for which both parts of a model must change together (Agarwal, Langford and Wei 2020, Appendix C)."""

from typing import Any

import jax.numpy as jnp

from mainstem import random
from mainstem.base import At, Sample, Stream
from mainstem.value import value

NOISE = 0.5  # the standard deviation of epsilon


@value
class partners(Stream):
    r"""One client for `problems.personal(2, 2)`, for which each part is best if it equals the other part.

    :math:`x^g = (a + \epsilon, b)`, :math:`x^l = (1 - a, 1 - b)` and :math:`y = 1`, with a, b ~ N(0, 1)
    and :math:`\epsilon` ~ N(0, 0.25). If both parts are (z, 1 - z), the prediction error is
    :math:`z \epsilon`. So the best model has (0, 1) in both parts, with loss 0; from (1, 0) in both parts
    neither part improves quickly.

    >>> partners().clients
    1
    """

    clients = 1

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        a, b, noise = random.normal(at.key, (3,))
        shown = jnp.stack([a + NOISE * noise, b]), jnp.stack([1 - a, 1 - b])
        return Sample(shown, jnp.ones(()))
