"""The algorithms under contract: every exported one, and variants that use other parts."""

import functools
import inspect
from collections.abc import Callable

import mainstem as ms
from mainstem import algorithms, parts
from mainstem.base import Algorithm

USUAL = {"step": 0.1, "rate": 0.5}  # for parameters without a default


def _usual(name: str) -> Algorithm:
    factory = getattr(algorithms, name)
    needed = [
        p.name for p in inspect.signature(factory).parameters.values() if p.default is p.empty
    ]
    return factory(**{name: USUAL[name] for name in needed})  # type: ignore[no-any-return]


CASES: dict[str, Callable[[], Algorithm]] = {
    name: functools.partial(_usual, name) for name in algorithms.__all__
} | {
    "ofediq quantised": lambda: ms.ofediq(0.1, rate=0.4, period=3, levels=3, blocks=4),
    "ofediq median": lambda: ms.ofediq(0.1, rate=0.9, collect=parts.median()),
    "fedomd box": lambda: ms.fedomd(
        parts.inverse_time(2.0),
        mirror=parts.euclidean(parts.box(-3, 3)),
        sync=parts.every(4, offset=2),
        participation=parts.exactly(2),
    ),
    "fedomd simplex": lambda: ms.fedomd(0.3, mirror=parts.entropy(), sync=parts.every(5)),
    "fedomd irregular": lambda: ms.fedomd(
        parts.adagrad(0.5),
        sync=parts.after_steps([1, 4, 5, 11, 16]),
        participation=parts.bernoulli(0.5),
        codec=parts.half(),
        collect=parts.trimmed_mean(0.2),
    ),
    "fedres_sgd batches": lambda: ms.fedres_sgd(
        parts.adagrad(0.3), own_step=parts.inverse_sqrt(0.1), period=3
    ),
    "dynamic_fedavg batches": lambda: ms.dynamic_fedavg(
        0.3, epochs=3, batch=5, participation=parts.exactly(3)
    ),
    "fedsea printed": lambda: ms.fedsea(parts.inverse_sqrt(0.3), period=4, offset=1),
}
