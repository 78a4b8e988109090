"""The algorithms under contract: every exported one, and variants that use other parts."""

from typing import NamedTuple

import optax

import mainstem as ms
from mainstem import algorithms, parts
from mainstem.base import Algorithm
from mainstem.testing import World
from mainstem.testing.worlds import in_batches, world_for
from mainstem.value import parameters

USUAL = {"step": 0.1, "rate": 0.5, "of": ms.fedogd(0.1)}  # for parameters without a default


class Case(NamedTuple):
    """An algorithm, and what it is tried on where that is not the usual world for it."""

    algorithm: Algorithm
    batches: bool = False

    def world(self, clients: int) -> World:
        """A problem and a stream of so many clients."""
        return in_batches(clients) if self.batches else world_for(self.algorithm, clients)


def _usual(name: str) -> Case:
    factory = getattr(algorithms, name)
    needed = [parameter for parameter, wanted in parameters(factory).items() if wanted]
    return Case(factory(**{name: USUAL[name] for name in needed}))


CASES: dict[str, Case] = {name: _usual(name) for name in algorithms.__all__} | {
    "centred clipping of models": Case(
        ms.guarded(ms.centred_clipping(ms.fedomd(0.1, sync=parts.every(3)), momentum=0.5, bucket=2))
    ),
    "guarded models": Case(ms.guarded(ms.fedomd(0.1, sync=parts.every(3)), factor=0.5)),
    "guarded samples": Case(ms.guarded(ms.fedres_sgd(0.1), factor=0.5, hold=1.5)),
    "guarded error feedback": Case(
        ms.guarded(
            ms.fedogd(
                0.1,
                participation=parts.bernoulli(0.6),
                codec=parts.error_feedback(parts.quantiser(2, blocks=3)),
                collect=parts.median(),
            ),
            factor=0.5,
        )
    ),
    "ofediq quantised": Case(ms.ofediq(0.1, rate=0.4, period=3, levels=3, blocks=4)),
    "ofediq median": Case(ms.ofediq(0.1, rate=0.9, collect=parts.median())),
    "fedogd adam": Case(
        ms.fedogd(0.1, server=parts.optimizer("adam", learning_rate=0.05), codec=parts.half())
    ),
    "fedogd error feedback": Case(
        ms.fedogd(
            0.1,
            sync=parts.every(2),
            participation=parts.bernoulli(0.6),
            codec=parts.error_feedback(parts.quantiser(2, blocks=3)),
        )
    ),
    "fedomd rounded broadcasts": Case(
        ms.fedomd(0.1, sync=parts.every(3), downlink=parts.quantiser(40, blocks=5))
    ),
    "fedogd half broadcasts": Case(ms.fedogd(0.1, downlink=parts.half())),
    "fedogd schedule": Case(
        ms.fedogd(
            optax.cosine_decay_schedule(0.3, 30),
            sync=parts.after_steps([2, 3, 9, 16]),
            participation=parts.exactly(4),
            codec=parts.top_k(3),
            collect=parts.clipped(1.0),
        )
    ),
    "fedomd box": Case(
        ms.fedomd(
            parts.inverse_time(2.0),
            mirror=parts.euclidean(parts.box(-3, 3)),
            sync=parts.every(4, offset=2),
            participation=parts.exactly(2),
        )
    ),
    "fedomd simplex": Case(ms.fedomd(0.3, mirror=parts.entropy(), sync=parts.every(5))),
    "fedomd irregular": Case(
        ms.fedomd(
            parts.adagrad(0.5),
            sync=parts.after_steps([1, 4, 5, 11, 16]),
            participation=parts.bernoulli(0.5),
            codec=parts.half(),
            collect=parts.trimmed_mean(0.2),
        )
    ),
    "fedres_sgd batches": Case(
        ms.fedres_sgd(parts.adagrad(0.3), own_step=parts.inverse_sqrt(0.1), period=3)
    ),
    "fedres_sgd gradients": Case(
        # A step of 0.1 is unstable here: in 200 steps a rounding error of 1e-16 grows to 1e-7.
        ms.fedres_sgd(0.02, message="gradient", codec=parts.quantiser(3), collect=parts.median())
    ),
    "dynamic_fedavg batches": Case(
        ms.dynamic_fedavg(0.3, epochs=3, batch=5, participation=parts.exactly(3)), batches=True
    ),
    "dynamic_fedavg periods": Case(
        ms.dynamic_fedavg(0.1, epochs=2, sync=parts.every(3), codec=parts.half(), incremental=False)
    ),
    "fedsea printed": Case(ms.fedsea(parts.inverse_sqrt(0.3), period=4, offset=1)),
}
