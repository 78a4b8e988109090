"""Problems: how a model decides, what is revealed afterwards, and the loss."""

from mainstem.problems.bandit import Logged as Logged
from mainstem.problems.bandit import Rewards as Rewards
from mainstem.problems.bandit import bandit, replay
from mainstem.problems.batched import batched
from mainstem.problems.cnn import cnn
from mainstem.problems.custom import custom
from mainstem.problems.linear import linear
from mainstem.problems.logistic import logistic
from mainstem.problems.mlp import mlp
from mainstem.problems.personal import personal
from mainstem.problems.random_features import random_features
from mainstem.problems.raw import experts, quadratic
from mainstem.problems.softmax import softmax

__all__ = [
    "bandit",
    "batched",
    "cnn",
    "custom",
    "experts",
    "linear",
    "logistic",
    "mlp",
    "personal",
    "quadratic",
    "random_features",
    "replay",
    "softmax",
]
