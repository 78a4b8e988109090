"""An extension of griffe: prepares the docstrings and signatures of mainstem for the reference pages.

Docstrings are written for Python's `help`, with formulas in the notation of Sphinx and with doctests. Here
they become Markdown. A value and a named tuple get the signature that it has at run time.
"""

import inspect
import re
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Formulas as $...$, doctests as fenced blocks, and the parameters of values."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every object, after its members."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Called for every class, after its members."""
        made_by = [str(each.value) for each in cls.decorators] + [str(each) for each in cls.bases]
        if {"value", "mx.value", "NamedTuple"} & {*made_by}:
            cls.set_member("__init__", _init(cls))


def as_markdown(docstring: str) -> str:
    """A docstring with its formulas and doctests as Markdown."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    return "\n\n".join(map(_paragraph, paragraphs))


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(">>> "):
        return f"```pycon\n{inspect.cleandoc(text)}\n```"
    block = re.fullmatch(r"\.\. math::\s*(.+)", text, re.DOTALL)
    if block:
        return "$$\n" + " ".join(block[1].split()) + "\n$$"
    text = re.sub(r":math:`([^`]+)`", lambda found: f"${' '.join(found[1].split())}$", text)
    pieces = re.split(r"(`[^`]*`|\$[^$]*\$)", text)  # code and formulas stay as they are
    pieces[::2] = [each.replace("<", "&lt;") for each in pieces[::2]]
    return "".join(pieces)


def _init(cls: griffe.Class) -> griffe.Function:
    """The constructor, with types as they are written and defaults as they are printed."""
    made = griffe.dynamic_import(cls.path)
    parameters = [griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)]
    for name, parameter in inspect.signature(made).parameters.items():
        needed = parameter.default is inspect.Parameter.empty
        parameters.append(
            griffe.Parameter(
                name,
                annotation=cls.members[name].annotation,
                kind=griffe.ParameterKind.positional_or_keyword,
                default=None if needed else repr(parameter.default),
            )
        )
    return griffe.Function("__init__", parameters=griffe.Parameters(*parameters), parent=cls)
