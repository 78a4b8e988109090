"""Formulas: the equations of a docstring, and LaTeX as MathML."""

import inspect
import re

from mainstem.errors import BadData

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


def mathml(formula: str, block: bool) -> str:
    r"""A formula of LaTeX as MathML.

    >>> mathml("x^2", block=False)
    '<math ... display="inline"><mrow>...</mrow></math>'
    """
    from latex2mathml.converter import convert

    try:  # latex2mathml knows neither \arg nor the brace of \Big\{
        made = convert(
            formula.replace("\\arg", "\\operatorname{arg}\\,"),
            display="block" if block else "inline",
        )
    except Exception as error:  # it has no base class of its own
        raise BadData(f"the formula {formula} cannot be shown: {type(error).__name__}") from None
    made = made.replace(">\\{<", ">{<").replace(">\\}<", ">}<")
    if "\\" in made:
        raise BadData(f"the formula {formula} cannot be shown")
    return made
