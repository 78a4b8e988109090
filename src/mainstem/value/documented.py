"""What a docstring says of a value: its first sentence and its equations, for notebooks and pages."""

import inspect
import re

_MATH = re.compile(r"^ *\.\. math::[ ]*(\S.*(?:\n(?! *\n).+)*)", re.MULTILINE)


def equations(documented: object) -> list[str]:
    r"""The formulas that a docstring sets off, in LaTeX.

    >>> def step():
    ...     r'''A step.
    ...
    ...     .. math:: w \\leftarrow w - \\eta g,
    ...
    ...     with the gradient g.'''
    >>> equations(step)
    ['w \\\\leftarrow w - \\\\eta g']
    """
    found = _MATH.findall(inspect.getdoc(documented) or "")
    return [" ".join(each.split()).rstrip(".,;") for each in found]


def summary(documented: object) -> str:
    r"""The first paragraph of a docstring, as one line; formulas inside it are `$...$`.

    >>> def step():
    ...     r'''Steps by :math:`\\eta`
    ...     along the gradient.'''
    >>> summary(step)
    'Steps by $\\\\eta$ along the gradient.'
    """
    first = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return re.sub(r":math:`([^`]*)`", r"$\1$", " ".join(first.split()))


def markdown(call: str, documented: object) -> str:
    """A value as a notebook shows it: the call that makes it, what it does, and its equations."""
    formulas = [f"$${each}$$" for each in equations(documented)]
    return "\n\n".join([f"`{call}`", summary(documented), *formulas])
