"""mainstem: online federated learning. Everything is loaded when first used, so that importing is cheap."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainstem import algorithms as algorithms
    from mainstem import datasets as datasets
    from mainstem import measure as measure
    from mainstem import parts as parts
    from mainstem import problems as problems
    from mainstem import streams as streams
    from mainstem import theory as theory
    from mainstem.advice import advise as advise
    from mainstem.algorithms.dynamic_fedavg import dynamic_fedavg as dynamic_fedavg
    from mainstem.algorithms.fedomd import fedomd as fedomd
    from mainstem.algorithms.fedomd import independent as independent
    from mainstem.algorithms.fedres_erm import fedres_erm as fedres_erm
    from mainstem.algorithms.fedres_erm import fictitious_play as fictitious_play
    from mainstem.algorithms.fedres_sgd import central as central
    from mainstem.algorithms.fedres_sgd import fedres_sgd as fedres_sgd
    from mainstem.algorithms.fedsea import fedsea as fedsea
    from mainstem.algorithms.ofediq import fedogd as fedogd
    from mainstem.algorithms.ofediq import ofedavg as ofedavg
    from mainstem.algorithms.ofediq import ofediq as ofediq
    from mainstem.engines.federate.learner import join as join
    from mainstem.engines.federate.learner import join_async as join_async
    from mainstem.engines.simulate import simulate as simulate
    from mainstem.errors import MainstemError as MainstemError
    from mainstem.parts.network import network as network
    from mainstem.run import Run as Run
    from mainstem.run import compare as compare
    from mainstem.run import load as load
    from mainstem.theory.planner import plan as plan

_HOMES = {
    "mainstem.advice": "advise",
    "mainstem.algorithms": "central dynamic_fedavg fedogd fedomd fedres_erm fedres_sgd fedsea "
    "fictitious_play independent ofedavg ofediq",
    "mainstem.engines.federate.learner": "join join_async",
    "mainstem.engines.simulate": "simulate",
    "mainstem.errors": "MainstemError",
    "mainstem.parts": "network",
    "mainstem.run": "Run compare load",
    "mainstem.theory.planner": "plan",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_MODULES = ("algorithms", "datasets", "measure", "parts", "problems", "streams", "theory")

__all__ = sorted([*_HOME_OF, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"mainstem.{name}")
    raise AttributeError(f"module 'mainstem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
