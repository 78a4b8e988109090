"""Contextual bandits: contexts of all actions are shown, one is chosen, its reward alone is revealed.

Exploration belongs to the decision, learning to the regression underneath (Agarwal et al. 2020,
Section 5.1): an explored round teaches, a greedy one does not.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check as checks
from mainstem import random
from mainstem.base import At, Problem, Sample
from mainstem.errors import BadData
from mainstem.spec import recorded


class Rewards(NamedTuple):
    """What is hidden: the reward of each action and, if known, its mean."""

    reward: Any  # [actions]
    mean: Any = None  # [actions]


class Logged(NamedTuple):
    """What is hidden in a log: what another policy did, what came of it, how likely it was."""

    action: Any
    reward: Any
    propensity: Any


class Decision(NamedTuple):
    """An action, how likely each was, what each is thought to be worth, and whether it was explored."""

    action: Any
    chances: Any  # [actions]
    values: Any  # [actions]
    explored: Any


@recorded
def bandit(
    of: Problem, actions: int, period: int | None = None, epsilon: float | None = None
) -> Problem:
    r"""Choose among `actions` by what the regression `of` predicts for each (:math:`\epsilon`-greedy).

    Every `period`-th step, or with probability `epsilon`, an action is drawn uniformly and `of`
    learns from its reward; otherwise the best-looking is taken (eq. (12)) and nothing is learnt.
    Contexts are `of`'s features with the actions first. With known means the metric `regret` is
    that of eq. (11).

    >>> from mainstem.problems import personal
    >>> bandit(personal(shared=3, own=3), actions=5, period=10).size
    6
    """
    actions = _admit("bandit", of, actions)
    if (period is None) == (epsilon is None):
        raise checks.refuse("bandit", "period", "be given, or epsilon, not both", period)
    if period is not None:
        checks.integer("bandit", "period", period, least=1)
    if epsilon is not None and not 0 < checks.number("bandit", "epsilon", epsilon) <= 1:
        raise checks.refuse("bandit", "epsilon", "lie in (0, 1]", epsilon)

    def decide(params: Any, shown: Any, at: At) -> Decision:
        values = _values(of, params, shown, at)
        best = jnp.argmax(values)
        draws = random.uniform(at.key, (2,))
        if period is None:
            rate: Any = epsilon
            explored = draws[1] < rate
        else:
            explored = at.t % period == 0
            rate = explored.astype(values.dtype)
        drawn = jnp.minimum((draws[0] * actions).astype(jnp.int32), actions - 1)
        chances = rate / actions + (1 - rate) * (jnp.arange(actions) == best)
        return Decision(jnp.where(explored, drawn, best), chances, values, explored)

    def reveal(decision: Decision, sample: Sample) -> Sample:
        context = jax.tree.map(lambda x: x[decision.action], sample.shown)
        return Sample(context, sample.hidden.reward[decision.action], decision.explored)

    def metrics(decision: Decision, sample: Sample) -> Mapping[str, Any]:
        told = {"reward": sample.hidden.reward[decision.action]}
        if sample.hidden.mean is None:
            return told
        mean = sample.hidden.mean
        return told | {"regret": jnp.max(mean) - mean[decision.action]}

    def check(shown: Any, hidden: Any) -> None:
        if not isinstance(hidden, Rewards):
            raise BadData("bandit: wants a reward for each action: streams give problems.Rewards")
        _check_contexts("bandit", of, shown, hidden.reward, actions)

    return _partial(of, decide, reveal, metrics, check)


@recorded
def replay(of: Problem, actions: int, epsilon: float = 0.0) -> Problem:
    r"""A log of another policy: learn from every logged reward, and estimate what one's own would earn.

    The client's policy takes the best-looking action, or with probability `epsilon` any. It is judged
    by what was logged: `ips`, the reward weighted by how much likelier the policy is to take the
    logged action than the log was, and `dr`, the doubly robust form that starts from the predicted
    value. Both are unbiased, as the policy is fixed before the row is seen. `reward` is the log's own.

    >>> from mainstem.problems import personal
    >>> replay(personal(shared=3, own=3), actions=5).size
    6
    """
    actions = _admit("replay", of, actions)
    if not 0 <= checks.number("replay", "epsilon", epsilon) <= 1:
        raise checks.refuse("replay", "epsilon", "lie in [0, 1]", epsilon)

    def decide(params: Any, shown: Any, at: At) -> Decision:
        values = _values(of, params, shown, at)
        best = jnp.argmax(values)
        chances = epsilon / actions + (1 - epsilon) * (jnp.arange(actions) == best)
        return Decision(best, chances, values, jnp.ones((), bool))

    def reveal(decision: Decision, sample: Sample) -> Sample:
        context = jax.tree.map(lambda x: x[sample.hidden.action], sample.shown)
        return Sample(context, sample.hidden.reward, decision.explored)

    def metrics(decision: Decision, sample: Sample) -> Mapping[str, Any]:
        log = sample.hidden
        ratio = decision.chances[log.action] / log.propensity
        missed = log.reward - decision.values[log.action]
        expected = jnp.sum(decision.chances * decision.values)
        return {"reward": log.reward, "ips": ratio * log.reward, "dr": expected + ratio * missed}

    def check(shown: Any, hidden: Any) -> None:
        if not isinstance(hidden, Logged):
            raise BadData(
                "replay: wants (action, reward, propensity): streams give problems.Logged"
            )
        _check_contexts("replay", of, shown, None, actions)
        for name, wrong in (
            ("action", (hidden.action < 0) | (hidden.action >= actions)),
            ("propensity", ~((hidden.propensity > 0) & (hidden.propensity <= 1))),
        ):
            for row in np.flatnonzero(wrong):
                allowed = f"0 to {actions - 1}" if name == "action" else "in (0, 1]"
                got = getattr(hidden, name)[row]
                raise BadData(f"replay: wants each {name} {allowed}, row {row} has {got}")

    return _partial(of, decide, reveal, metrics, check)


def _admit(owner: str, of: Problem, actions: int) -> int:
    checks.instance(owner, "of", of, Problem, "personal(8, 8)")
    return checks.integer(owner, "actions", actions, least=2)


def _values(of: Problem, params: Any, shown: Any, at: At) -> Any:
    """What each action is thought to be worth."""
    return jax.vmap(lambda context: of.decide(params, context, at))(shown)


def _partial(of: Problem, decide: Any, reveal: Any, metrics: Any, check: Any) -> Problem:
    """The regression `of`, seen through the choices that are made with it."""

    def loss(params: Any, seen: Sample) -> Any:
        return jnp.where(seen.count, of.loss(params, seen), 0)

    return of._replace(
        decide=decide,
        reveal=reveal,
        loss=loss,
        metrics=metrics,
        check=check,
        form=None,
        linear=None,
        together=None,
        news=lambda seen: seen.count,
        features=None,
        classes=None,
    )


def _check_contexts(owner: str, of: Problem, shown: Any, reward: Any, actions: int) -> None:
    for leaf in jax.tree.leaves(shown) + ([] if reward is None else [reward]):
        if np.ndim(leaf) < 2 or leaf.shape[1] != actions:
            found = np.shape(leaf)[1:]
            raise BadData(f"{owner}: wants {actions} actions first, the stream has shape {found}")
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), shown)
    targets = np.zeros(len(jax.tree.leaves(flat)[0]), np.float32) if reward is None else reward
    of.check(flat, np.ravel(targets))
