"""Formulas: LaTeX as MathML, which a browser shows without a script."""

from mainstem.errors import BadData


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
