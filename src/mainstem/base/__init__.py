"""Base classes and types: streams, problems, algorithms, and the parts of algorithms.

Inside the engines a model is one flat vector (`Params`). `Flat` wraps a problem with nested
parameters in this form, so that algorithms and parts are arithmetic on vectors.
"""

from mainstem.base.algorithm import (
    GRADIENTS,
    MODELS,
    SUMS,
    Algorithm,
    ModelAveraging,
    Parts,
    PartsButSync,
    Setting,
    Traits,
)
from mainstem.base.domain import Domain
from mainstem.base.parts import (
    Arrivals,
    Codec,
    Collect,
    Collected,
    Falling,
    Mirror,
    Optimizer,
    Participation,
    Step,
    Sync,
)
from mainstem.base.problem import Faced, Flat, Gradient, Linear, Problem, Residual
from mainstem.base.stream import Drawn, Exam, Sampler, Stream
from mainstem.base.types import (
    SEVERAL,
    At,
    Batch,
    Form,
    Pair,
    Params,
    Sample,
    cast,
    constant,
    joined,
    of_client,
)
from mainstem.base.wrapper import Wrapper

__all__ = [
    "GRADIENTS",
    "MODELS",
    "SEVERAL",
    "SUMS",
    "Algorithm",
    "Arrivals",
    "At",
    "Batch",
    "Codec",
    "Collect",
    "Collected",
    "Domain",
    "Drawn",
    "Exam",
    "Faced",
    "Falling",
    "Flat",
    "Form",
    "Gradient",
    "Linear",
    "Mirror",
    "ModelAveraging",
    "Optimizer",
    "Pair",
    "Params",
    "Participation",
    "Parts",
    "PartsButSync",
    "Problem",
    "Residual",
    "Sample",
    "Sampler",
    "Setting",
    "Step",
    "Stream",
    "Sync",
    "Traits",
    "Wrapper",
    "cast",
    "constant",
    "joined",
    "of_client",
]
