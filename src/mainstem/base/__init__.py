"""The tuples everything speaks: what arrives, what is at stake, and how it is learnt.

Inside the engines a model is one flat vector (`Params`); `flat` makes a problem with nested
parameters speak it, so that algorithms and parts are arithmetic on vectors.
"""

from mainstem.base.algorithm import (
    Algorithm,
    Arrivals,
    Codec,
    Collect,
    Collected,
    Mirror,
    Participation,
    Setting,
    Step,
    Sync,
    Traits,
)
from mainstem.base.problem import (
    Domain,
    Faced,
    Flat,
    Gradient,
    Linear,
    Problem,
    Residual,
    Together,
    flat,
)
from mainstem.base.stream import Drawn, Exam, Stream, sampled
from mainstem.base.values import (
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
)

__all__ = [
    "SEVERAL",
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
    "Flat",
    "Form",
    "Gradient",
    "Linear",
    "Mirror",
    "Pair",
    "Params",
    "Participation",
    "Problem",
    "Residual",
    "Sample",
    "Setting",
    "Step",
    "Stream",
    "Sync",
    "Together",
    "Traits",
    "cast",
    "constant",
    "flat",
    "joined",
    "sampled",
]
