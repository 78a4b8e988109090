"""What is at stake: how a model decides, what is revealed afterwards, what it costs."""

from mainstem.problems.cnn import cnn
from mainstem.problems.custom import custom
from mainstem.problems.linear import linear
from mainstem.problems.logistic import logistic
from mainstem.problems.mlp import mlp
from mainstem.problems.random_features import random_features
from mainstem.problems.raw import experts, quadratic
from mainstem.problems.softmax import softmax

__all__ = [
    "cnn",
    "custom",
    "experts",
    "linear",
    "logistic",
    "mlp",
    "quadratic",
    "random_features",
    "softmax",
]
