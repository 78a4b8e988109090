"""Values: final, frozen dataclasses that are JAX pytrees. Fields define a value, methods are its equations.

Numbers and other values are leaves and branches of the tree (traced, stacked, placed on devices); fields
of the kinds `static`, `integer`, `flag` or `one_of` are part of its structure. Equality, hash, pickle, `print` and
the table in an experiment file follow from the fields.
"""

from mainstem.value.comparison import fingerprint, same
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
from mainstem.value.frozen import Value, once, parts_of, set_field, value
from mainstem.value.presets import parameters, preset, takes_anything
from mainstem.value.printing import shown

__all__ = [
    "Value",
    "at_least",
    "fingerprint",
    "flag",
    "integer",
    "leaf",
    "number",
    "once",
    "one_of",
    "parameters",
    "part",
    "parts_of",
    "positive",
    "preset",
    "rates",
    "same",
    "set_field",
    "shown",
    "static",
    "takes_anything",
    "value",
]
