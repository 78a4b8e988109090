"""How a value was made: factories record their call, so that a run can be written down and rebuilt."""

import functools
import hashlib
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from mainstem.errors import BadParameter

P = ParamSpec("P")
V = TypeVar("V")


class Spec:
    """The factory's name, the arguments it was called with, and the module it is from.

    Compared by identity, so that the value that carries it stays hashable.
    """

    def __init__(self, name: str, arguments: dict[str, Any], module: str = ""):
        self.name = name
        self.arguments = arguments
        self.module = module

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}={plain(value)!r}" for key, value in self.arguments.items())
        return f"{self.name}({inside})"


UNRECORDED = Spec("custom", {})


def recorded(factory: Callable[P, V]) -> Callable[P, V]:
    """Make `factory` write its own call into the `spec` field of what it returns."""
    signature = inspect.signature(factory)

    @functools.wraps(factory)
    def build(*args: P.args, **kwargs: P.kwargs) -> V:
        try:
            made: Any = factory(*args, **kwargs)
        except BadParameter as error:
            raise _as_called(factory.__name__, signature, error) from None
        arguments = _flattened(signature, signature.bind(*args, **kwargs))
        return made._replace(spec=Spec(factory.__name__, arguments, factory.__module__))

    return build


def _as_called(name: str, signature: inspect.Signature, error: BadParameter) -> BadParameter:
    """The refusal in the name of the factory that the user called, if the parameter is its own."""
    if error.parameter not in signature.parameters:
        return error
    _, _, text = str(error).partition(": ")
    return BadParameter(f"{name}: {text}", error.parameter)


def _flattened(signature: inspect.Signature, bound: inspect.BoundArguments) -> dict[str, Any]:
    """The arguments by name, those caught by `**` spread out."""
    arguments: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(value)
        else:
            arguments[name] = value
    return arguments


def plain(value: Any) -> Any:
    """`value` in what TOML knows: a part becomes a table, a large array its fingerprint.

    >>> plain((1, 2.5, None))
    [1, 2.5, 'none']
    """
    spec = getattr(value, "spec", None)
    if isinstance(spec, Spec):
        return table(spec)
    if value is None:
        return "none"
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple | set | frozenset | range):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if callable(value):
        return f"{getattr(value, '__module__', '?')}:{getattr(value, '__qualname__', repr(value))}"
    if hasattr(value, "__array__"):
        return _array(np.asarray(value))
    return str(value)


def table(spec: Spec) -> dict[str, Any]:
    """`spec` as a TOML table: its name, then its arguments."""
    arguments = {k: plain(v) for k, v in spec.arguments.items() if v is not None}
    return {"name": spec.name, **arguments}


def _array(array: np.ndarray) -> Any:
    if array.size <= 4096 and array.dtype != object:
        return array.tolist()
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    return f"array {array.dtype} {array.shape} sha256 {digest}"
