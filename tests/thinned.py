"""Combinations of parameters, few of which are in the gate: the others are in the slow tier."""

import itertools

import pytest


def thinned(*axes, gate):
    """All combinations of the names on the axes, those in `gate` for the quick tier."""
    return [
        pytest.param(
            *names, marks=[pytest.mark.slow] * (names not in gate), id="-".join(map(str, names))
        )
        for names in itertools.product(*axes)
    ]
