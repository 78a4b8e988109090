"""Contextual bandits: the contexts of all actions are shown, one is chosen, only its reward is revealed.

Exploration is part of the decision, learning is part of the regression (Agarwal et al. 2020, Section 5.1):
the client learns from an explored step, and not from a greedy one.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check, random
from mainstem.base import At, Problem, Residual, Sample
from mainstem.errors import BadData
from mainstem.problems.wrapped import Wrapped
from mainstem.random import Key
from mainstem.value import integer, leaf, part, value

EXAMPLE = "personal(8, 8)"


class Rewards(NamedTuple):
    """The hidden part of a sample: the reward of each action and, if known, its mean."""

    reward: Any  # [actions]
    mean: Any = None  # [actions]


class Logged(NamedTuple):
    """The hidden part of a sample of a log: the action of another policy, its reward and its probability."""

    action: Any
    reward: Any
    propensity: Any


class Decision(NamedTuple):
    """An action, the probability and the predicted reward of each action, and whether it was explored."""

    action: Any
    chances: Any  # [actions]
    values: Any  # [actions]
    explored: Any


class Choosing(Wrapped):
    """A problem that chooses actions by the predictions of the regression `of`."""

    actions: int

    @property
    def residual(self) -> Residual | None:
        return self.of.residual

    def init(self, key: Key) -> Any:
        return self.of.init(key)

    def loss(self, params: Any, seen: Sample) -> Any:
        return jnp.where(seen.count, self.of.loss(params, seen), 0)

    def informative(self, seen: Sample) -> Any:
        """Whether the action was explored."""
        return seen.count

    def _values(self, params: Any, shown: Any, at: At) -> Any:
        """The predicted reward of each action."""
        return jax.vmap(lambda context: self.of.decide(params, context, at))(shown)

    def _chances(self, rate: Any, best: Any) -> Any:
        """The probability of each action: a uniform one with probability `rate`, else the best."""
        return rate / self.actions + (1 - rate) * (jnp.arange(self.actions) == best)

    def _check_contexts(self, shown: Any, reward: Any) -> None:
        for array in jax.tree.leaves(shown) + ([] if reward is None else [reward]):
            if np.ndim(array) < 2 or array.shape[1] != self.actions:
                raise BadData(
                    f"{self.call()[0]}: wants {self.actions} actions first, "
                    f"the stream has shape {np.shape(array)[1:]}"
                )
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), shown)
        targets = np.zeros(len(jax.tree.leaves(flat)[0]), np.float32) if reward is None else reward
        self.of.check(flat, np.ravel(targets))


def _some_chance(owner: str, name: str, given: Any) -> float:
    if not 0 < check.number(owner, name, given) <= 1:
        raise check.refuse(owner, name, "lie in (0, 1]", given)
    return float(given)


@value
class bandit(Choosing):
    r"""An :math:`\epsilon`-greedy choice among `actions`, by the predictions of the regression `of`.

    .. math:: a_t = \arg\max_a \hat r(x_{t,a}) \quad \text{or, explored, uniform}

    Every `period`-th step, or with probability `epsilon`, an action is drawn uniformly and `of`
    learns from its reward; otherwise the action of the largest prediction is taken (eq. (12)) and
    nothing is learnt. Contexts are the features of `of`, with the actions as first axis. If the means
    are known, the metric `regret` is that of eq. (11).

    >>> from mainstem.problems import personal
    >>> bandit(personal(shared=3, own=3), actions=5, period=10).parameters
    6
    """

    of: Problem = part(Problem, EXAMPLE)
    actions: int = integer(least=2)
    period: int | None = integer(default=None, least=1)
    epsilon: float | None = leaf(default=None, checked=_some_chance)

    def admit(self) -> None:
        if (self.period is None) == (self.epsilon is None):
            wanted = "be given, or epsilon, not both"
            raise check.refuse("bandit", "period", wanted, self.period)

    def decide(self, params: Any, shown: Any, at: At) -> Decision:
        values = self._values(params, shown, at)
        best = jnp.argmax(values)
        draws = random.uniform(at.key, (2,))
        if self.period is None:
            rate: Any = self.epsilon
            explored = draws[1] < rate
        else:
            explored = at.t % self.period == 0
            rate = explored.astype(values.dtype)
        drawn = jnp.minimum((draws[0] * self.actions).astype(jnp.int32), self.actions - 1)
        action = jnp.where(explored, drawn, best)
        return Decision(action, self._chances(rate, best), values, explored)

    def reveal(self, decision: Decision, sample: Sample) -> Sample:
        context = jax.tree.map(lambda x: x[decision.action], sample.shown)
        return Sample(context, sample.hidden.reward[decision.action], decision.explored)

    def metrics(self, decision: Decision, sample: Sample) -> Mapping[str, Any]:
        metrics = {"reward": sample.hidden.reward[decision.action]}
        if sample.hidden.mean is None:
            return metrics
        mean = sample.hidden.mean
        return metrics | {"regret": jnp.max(mean) - mean[decision.action]}

    def check(self, shown: Any, hidden: Any) -> None:
        if not isinstance(hidden, Rewards):
            raise BadData("bandit: wants a reward for each action: streams give problems.Rewards")
        self._check_contexts(shown, hidden.reward)


def _chance(owner: str, name: str, given: Any) -> float:
    if not 0 <= check.number(owner, name, given) <= 1:
        raise check.refuse(owner, name, "lie in [0, 1]", given)
    return float(given)


@value
class replay(Choosing):
    r"""A log of another policy: learns from every logged reward, and estimates the reward of its own policy.

    The client's policy :math:`\pi` takes the action of the largest prediction, or with probability `epsilon`
    a uniform one. Two metrics estimate its reward from the logged action a, reward r and propensity p:
    `ips`, inverse propensity scoring, and `dr`, the doubly robust form with the predicted reward
    :math:`\hat r`,

    .. math:: \mathrm{ips} = \frac{\pi(a)}{p} r, \quad
              \mathrm{dr} = \sum_b \pi(b) \hat r(b) + \frac{\pi(a)}{p} (r - \hat r(a))

    Both are unbiased, because the policy is fixed before the row is seen. `reward` is the logged reward.

    >>> from mainstem.problems import personal
    >>> replay(personal(shared=3, own=3), actions=5).parameters
    6
    """

    of: Problem = part(Problem, EXAMPLE)
    actions: int = integer(least=2)
    epsilon: float = leaf(default=0.0, checked=_chance)

    def decide(self, params: Any, shown: Any, at: At) -> Decision:
        values = self._values(params, shown, at)
        best = jnp.argmax(values)
        return Decision(best, self._chances(self.epsilon, best), values, jnp.ones((), bool))

    def reveal(self, decision: Decision, sample: Sample) -> Sample:
        context = jax.tree.map(lambda x: x[sample.hidden.action], sample.shown)
        return Sample(context, sample.hidden.reward, decision.explored)

    def metrics(self, decision: Decision, sample: Sample) -> Mapping[str, Any]:
        log = sample.hidden
        ratio = decision.chances[log.action] / log.propensity
        missed = log.reward - decision.values[log.action]
        expected = jnp.sum(decision.chances * decision.values)
        return {"reward": log.reward, "ips": ratio * log.reward, "dr": expected + ratio * missed}

    def check(self, shown: Any, hidden: Any) -> None:
        if not isinstance(hidden, Logged):
            raise BadData(
                "replay: wants (action, reward, propensity): streams give problems.Logged"
            )
        self._check_contexts(shown, None)
        for name, wrong in (
            ("action", (hidden.action < 0) | (hidden.action >= self.actions)),
            ("propensity", ~((hidden.propensity > 0) & (hidden.propensity <= 1))),
        ):
            for row in np.flatnonzero(wrong):
                allowed = f"0 to {self.actions - 1}" if name == "action" else "in (0, 1]"
                got = getattr(hidden, name)[row]
                raise BadData(f"replay: wants each {name} {allowed}, row {row} has {got}")
