"""mainstem: online federated learning. Everything is loaded when first used, so that importing is cheap."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainstem import algorithms, datasets, measure, parts, problems, streams, theory
    from mainstem.advice import advise
    from mainstem.algorithms.dynamic_fedavg import dynamic_fedavg
    from mainstem.algorithms.fedomd import fedomd, independent
    from mainstem.algorithms.fedres_erm import fedres_erm, fictitious_play
    from mainstem.algorithms.fedres_sgd import central, fedres_sgd
    from mainstem.algorithms.fedsea import fedsea
    from mainstem.algorithms.ofediq import fedogd, ofedavg, ofediq
    from mainstem.engines.federate.learner import join, join_async
    from mainstem.engines.simulate import simulate
    from mainstem.errors import MainstemError
    from mainstem.parts.network import network
    from mainstem.run import Run, compare, load
    from mainstem.theory.planner import plan

_HOMES = {
    "MainstemError": "mainstem.errors",
    "advise": "mainstem.advice",
    "Run": "mainstem.run",
    "central": "mainstem.algorithms",
    "compare": "mainstem.run",
    "dynamic_fedavg": "mainstem.algorithms",
    "fedogd": "mainstem.algorithms",
    "fedomd": "mainstem.algorithms",
    "fedres_erm": "mainstem.algorithms",
    "fedres_sgd": "mainstem.algorithms",
    "fedsea": "mainstem.algorithms",
    "fictitious_play": "mainstem.algorithms",
    "independent": "mainstem.algorithms",
    "join": "mainstem.engines.federate.learner",
    "join_async": "mainstem.engines.federate.learner",
    "load": "mainstem.run",
    "network": "mainstem.parts",
    "ofedavg": "mainstem.algorithms",
    "ofediq": "mainstem.algorithms",
    "plan": "mainstem.theory.planner",
    "simulate": "mainstem.engines.simulate",
}
_MODULES = ("algorithms", "datasets", "measure", "parts", "problems", "streams", "theory")

__all__ = [
    "MainstemError",
    "Run",
    "advise",
    "algorithms",
    "central",
    "compare",
    "datasets",
    "dynamic_fedavg",
    "fedogd",
    "fedomd",
    "fedres_erm",
    "fedres_sgd",
    "fedsea",
    "fictitious_play",
    "independent",
    "join",
    "join_async",
    "load",
    "measure",
    "network",
    "ofedavg",
    "ofediq",
    "parts",
    "plan",
    "problems",
    "simulate",
    "streams",
    "theory",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"mainstem.{name}")
    raise AttributeError(f"module 'mainstem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
