"""Two partners who must move together (Agarwal, Langford and Wei 2020, Appendix C)."""

from typing import Any

import jax.numpy as jnp

from mainstem import random
from mainstem.base import At, Sample, Stream
from mainstem.value import value

NOISE = 0.5  # the standard deviation of epsilon


@value
class partners(Stream):
    r"""One client for `problems.personal(2, 2)`, where either side is best when it agrees with the other.

    :math:`x^g = (a + \epsilon, b)`, :math:`x^l = (1 - a, 1 - b)` and :math:`y = 1`, with a, b ~ N(0, 1)
    and :math:`\epsilon` ~ N(0, 0.25). Equal models (z, 1 - z) on both sides predict all but
    :math:`z \epsilon`, so the best pair is (0, 1) twice, without any loss; a start at (1, 0) twice is
    one that neither side has a reason to leave quickly.

    >>> partners().clients
    1
    """

    clients = 1

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        a, b, noise = random.normal(at.key, (3,))
        shown = jnp.stack([a + NOISE * noise, b]), jnp.stack([1 - a, 1 - b])
        return Sample(shown, jnp.ones(()))
