"""Values: final, frozen dataclasses that are JAX pytrees. Fields say what a value is, methods are its equations.

Numbers and other values are leaves and branches of the tree (traced, stacked, placed on devices); fields
made with `static`, `integer`, `flag` or `one_of` are part of its structure. Everything else follows from the
fields: equality, hash, pickle, `print` and the table of an experiment file.
"""

from mainstem.value.comparison import fingerprint
from mainstem.value.fields import (
    at_least,
    flag,
    integer,
    leaf,
    number,
    one_of,
    part,
    positive,
    rates,
    static,
)
from mainstem.value.frozen import Value, keep, parts_of, value
from mainstem.value.presets import parameters, preset, takes_anything
from mainstem.value.printing import shown

__all__ = [
    "Value",
    "at_least",
    "fingerprint",
    "flag",
    "integer",
    "keep",
    "leaf",
    "number",
    "one_of",
    "parameters",
    "part",
    "parts_of",
    "positive",
    "preset",
    "rates",
    "shown",
    "static",
    "takes_anything",
    "value",
]
