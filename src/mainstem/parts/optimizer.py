"""Server optimizers: how the server updates its model with the mean gradient. The rules are optax's."""

import inspect
import numbers as numbers_
from typing import Any

import optax

from mainstem import check
from mainstem.base import Optimizer, Params
from mainstem.errors import BadParameter
from mainstem.value import leaf, static, value


def _gives_a_rule(make: Any) -> bool:
    """Whether the return annotation of a function is an optax transformation."""
    if not inspect.isfunction(make):
        return False
    returned = inspect.signature(make).return_annotation
    return isinstance(returned, type) and issubclass(returned, optax.GradientTransformation)


@value
class Named(Optimizer):
    """A rule of optax by name. Its numbers are leaves: one program serves every learning rate."""

    rule: str = static()
    numbers: dict[str, float] = leaf()
    options: tuple[tuple[str, Any], ...] = static(default=())

    def admit(self) -> None:
        make = getattr(optax, self.rule, None) if isinstance(self.rule, str) else None
        if not _gives_a_rule(make):  # no other function is ever called by its name
            wanted = 'name a rule of optax, such as "adam"'
            raise check.refuse("optimizer", "rule", wanted, self.rule)
        try:
            self._made()
        except (TypeError, ValueError) as error:
            raise BadParameter(f"optimizer: {self.rule} refuses its arguments: {error}") from None

    def _made(self) -> optax.GradientTransformation:
        return getattr(optax, self.rule)(**self.numbers, **dict(self.options))

    def call(self) -> tuple[str, dict[str, Any]]:
        return "optimizer", {"rule": self.rule, **self.numbers, **dict(self.options)}

    def init(self, params: Params) -> Any:
        return self._made().init(params)

    def update(self, gradient: Params, state: Any, params: Params) -> tuple[Params, Any]:
        return self._made().update(gradient, state, params)


@value
class Transformation(Optimizer):
    """An optax transformation made by the caller: equal only to itself, and not written to files."""

    of: Any = static()

    def init(self, params: Params) -> Any:
        return self.of.init(params)

    def update(self, gradient: Params, state: Any, params: Params) -> tuple[Params, Any]:
        return self.of.update(gradient, state, params)


def optimizer(rule: str, **arguments: Any) -> Optimizer:
    """The rule of this name in optax: ``optimizer("adam", learning_rate=0.01, b1=0.9)``.

    >>> optimizer("yogi", learning_rate=0.1) == optimizer("yogi", learning_rate=0.1)
    True
    """
    numbers = {key: float(it) for key, it in arguments.items() if _is_number(rule, key, it)}
    options = {key: it for key, it in arguments.items() if key not in numbers}
    return Named(rule, numbers, tuple(sorted(options.items())))


def _is_number(rule: Any, name: str, given: Any) -> bool:
    """Whether an argument becomes a leaf: a float, or an integer where optax takes a float."""
    if isinstance(given, bool) or not isinstance(given, numbers_.Real):
        return False
    if not isinstance(given, numbers_.Integral):
        return True
    make: Any = getattr(optax, rule, None) if isinstance(rule, str) else None
    takes = inspect.signature(make).parameters.get(name) if _gives_a_rule(make) else None
    return takes is not None and not isinstance(takes.default, int) and takes.annotation is not int


def as_optimizer(owner: str, name: str, given: Any) -> Optimizer:
    """`given` itself, if it is an `Optimizer`, or an optax transformation as one."""
    if isinstance(given, Optimizer):
        return given
    if isinstance(given, optax.GradientTransformation):
        return Transformation(given)
    wanted = 'be an optax transformation or optimizer("adam", learning_rate=0.01)'
    raise check.refuse(owner, name, wanted, given)
