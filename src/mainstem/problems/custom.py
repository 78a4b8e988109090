"""Custom problems: three functions define one, so that a Flax or Equinox model can be used unchanged."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import check
from mainstem.base import Domain, Sample
from mainstem.errors import BadData, MainstemError, first_line
from mainstem.parts import everything
from mainstem.problems.supervised import Supervised, ridge_field
from mainstem.random import Key, root
from mainstem.value import flag, integer, part, positive, preset, static, value

Metric = Callable[[Any, Any], Any]  # (scores, y) -> a scalar

STATISTICS = "batch_stats"  # Flax's name for running means of a batch


def _metrics(owner: str, name: str, given: Any) -> tuple[tuple[str, Metric], ...]:
    """Named functions, from a mapping or from pairs."""
    named = tuple(given.items() if isinstance(given, Mapping) else map(tuple, given))
    for each in named:
        if len(each) != 2 or not (isinstance(each[0], str) and callable(each[1])):
            raise check.refuse(
                "custom", "metrics", 'map names to functions: {"hinge": hinge}', given
            )
    return named


@value
class Custom(Supervised):
    """A problem whose first model, scores and cost are functions; see `custom`.

    >>> import jax.numpy as jnp
    >>> Custom(lambda key: jnp.zeros(3), lambda w, x: x @ w, lambda score, y: (score - y) ** 2).parameters
    3
    """

    first: Callable[[Key], Any] = static()  # key -> the first model
    scores: Callable[[Any, Any], Any] = static()  # (params, x) -> the scores of one sample
    cost: Callable[[Any, Any], Any] = static()  # (scores, y) -> a scalar
    classes: int | None = integer(default=None, least=2)
    ridge: float | None = ridge_field()
    convex: bool = flag(default=False)  # in the parameters
    smooth: float | None = positive(default=None)  # a bound on the second derivative
    domain: Domain = part(Domain, "l2_ball(1.0)", default=everything())
    recorded: tuple[tuple[str, Metric], ...] = static(default=(), checked=_metrics)

    def admit(self) -> None:
        for name, given in (("init", self.first), ("apply", self.scores), ("loss", self.cost)):
            if not callable(given):
                raise check.refuse("custom", name, "be a function", given)

    def init(self, key: Key) -> Any:
        _ = _fixed(self.first)  # refuses what cannot be learnt
        return jax.tree.map(lambda x: x if _learns(x) else None, self.first(key))

    def apply(self, params: Any, x: Any) -> Any:
        whole = jax.tree.map(
            lambda number, fixed: fixed if number is None else number,
            params,
            _fixed(self.first),
            is_leaf=lambda x: x is None,
        )
        return self.scores(whole, x)

    def penalty(self, scores: Any, target: Any) -> Any:
        return self.cost(scores, target)

    def metrics(self, decision: Any, sample: Sample) -> Mapping[str, Any]:
        own = {name: of(decision, sample.hidden) for name, of in self.recorded}
        return {**super().metrics(decision, sample), **own}

    def check(self, shown: Any, hidden: np.ndarray) -> None:
        super().check(shown, hidden)
        one = jax.tree.map(lambda x: jnp.asarray(x[0]), (shown, hidden))
        scores = _shape("apply", self.apply, jax.eval_shape(self.init, root(0)), one[0])
        sizes: list[tuple[int, ...]] = [(), (1,)]
        if self.classes is not None:
            sizes = [(), (2,)] if self.classes == 2 else [(self.classes,)]
        if scores.shape not in sizes:
            wanted = " or ".join(map(str, sizes))
            raise BadData(
                f"custom: apply gives scores of shape {scores.shape}, wanted is {wanted}: "
                + ("one for each class" if self.classes else "one prediction")
                + _hint(scores.shape, self.classes)
            )
        for name, of in (("loss", self.cost), *self.recorded):
            paid = _shape(name, of, scores, one[1])
            if paid.shape != ():
                raise BadData(
                    f"custom: {name} has the shape {paid.shape}, wanted is one number, ()"
                )


def _hint(shape: tuple[int, ...], classes: int | None) -> str:
    """What may be meant by scores of another shape."""
    own = (
        f"for {shape[0]} classes give classes={shape[0]}, "
        if len(shape) == 1 and not classes
        else ""
    )
    return f" ({own}for batches take problems.batched)"


@functools.lru_cache(maxsize=32)
def _fixed(first: Callable[[Key], Any]) -> Any:
    """The first model without its numbers: what a module has besides them, such as its activations."""
    with jax.ensure_compile_time_eval():
        try:
            whole = first(jnp.asarray(root(0)))
        except Exception as error:
            reason = first_line(error, named=True)
            raise BadData(f"custom: init(key) fails: {reason}") from error
    if isinstance(whole, Mapping) and STATISTICS in whole:
        raise BadData(
            "custom: init gives batch_stats, which no gradient learns: take a norm of each sample "
            "(LayerNorm, GroupNorm) in the place of BatchNorm"
        )
    for path, entry in jax.tree_util.tree_leaves_with_path(whole):
        if isinstance(entry, float) and not isinstance(path[-1], jax.tree_util.GetAttrKey):
            raise BadData(  # an attribute of a module, such as the rate of its dropout, is no parameter
                f"custom: init gives the number {entry}: write jnp.asarray({entry}) if it is to be learnt"
            )
    if not any(map(_learns, jax.tree.leaves(whole))):
        raise BadData(
            "custom: init gives no array of real numbers, so that there is nothing to learn"
        )
    return jax.tree.map(lambda x: None if _learns(x) else x, whole)


def _shape(name: str, function: Callable[..., Any], *given: Any) -> Any:
    """The shape of what a function returns; its own error, with a hint, if it fails."""
    try:
        return jax.eval_shape(function, *given)
    except MainstemError:
        raise
    except Exception as error:
        hint = ""
        if "rng" in str(error).lower():
            hint = " (a model with dropout must be called as for evaluation, such as deterministic=True)"
        reason = first_line(error, named=True)
        raise BadData(f"custom: {name} fails on the first sample: {reason}{hint}") from error


def _learns(entry: Any) -> bool:
    """Whether an entry of a model is an array of real numbers."""
    return isinstance(entry, jax.Array | np.ndarray) and jnp.issubdtype(entry.dtype, jnp.floating)


@preset(
    Custom,
    init="first",
    apply="scores",
    loss="cost",
    classes="classes",
    ridge="ridge",
    convex="convex",
    smooth="smooth",
    domain="domain",
    metrics="recorded",
)
def custom(
    init: Callable[[Key], Any],
    apply: Callable[[Any, Any], Any],
    loss: Callable[[Any, Any], Any],
    classes: int | None = None,
    ridge: float | None = None,
    convex: bool = False,
    smooth: float | None = None,
    domain: Domain = everything(),
    metrics: Mapping[str, Metric] | tuple[tuple[str, Metric], ...] = (),
) -> Custom:
    """A problem from three functions: any model, any loss.

    `init(key)` gives nested params, `apply(params, x)` the scores of one sample, `loss(scores, y)`
    their cost. With `classes` accuracy is measured, without it the squared error; `metrics` are further
    functions of (scores, y) to record. `convex` declares that the loss is convex in the params: regret is
    then measured against the best model in the `domain`, with a certificate; otherwise against the best
    model found. `smooth` declares a bound on the second derivative of the loss of any sample (ridge included),
    which the theorems of OFedIQ and FedSEA need.

    A Flax module: ``custom(lambda key: net.init(key, x), net.apply, cross_entropy, classes=10)``; an Equinox
    module is made by `init` and called by `apply`.

    >>> import jax.numpy as jnp
    >>> problem = custom(lambda key: {"w": jnp.zeros(3)}, lambda p, x: x @ p["w"], lambda s, y: (s - y) ** 2)
    >>> problem.parameters
    3
    """
    facts = convex, smooth, domain
    return Custom(init, apply, loss, classes, ridge, *facts, metrics)  # type: ignore[arg-type]
