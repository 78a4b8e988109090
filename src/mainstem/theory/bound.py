"""Bounds: the value of a theorem's statement, as a guarantee or only as a rate."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mainstem.errors import MainstemError

SUMMED = "summed over clients"
Amount = float | np.ndarray  # one number, or one for each number of steps


class Bound(NamedTuple):
    """A guarantee: the quantity `of` is at most the sum of the terms.

    >>> print(Bound("Theorem", "regret", 100, {"start": 4.0, "noise": 6.0}))
    Theorem: regret <= 10 (start 4, noise 6)
    """

    theorem: str
    of: str  # the bounded quantity, in the paper's units
    steps: Any  # the number of steps, or several
    terms: Mapping[str, Amount]

    @property
    def summed(self) -> bool:
        """Whether the paper sums over the clients instead of taking means."""
        return SUMMED in self.of

    @property
    def value(self) -> Amount:
        """The sum of the terms, one for each number of steps."""
        return sum(self.terms.values())

    def __float__(self) -> float:
        return float(np.ravel(self.value)[-1])

    def __str__(self) -> str:
        return f"{self.theorem}: {self.of} <= {float(self):.6g} ({_listed(self.terms)})"


class Rate(NamedTuple):
    """The growth of a quantity, up to a constant that the paper does not give: never a guarantee.

    >>> rate = Rate("Theorem", "regret", 100, {"noise": 10.0})
    >>> print(rate)
    Theorem: regret grows like 10 (noise 10), up to a constant: no guarantee
    >>> rate.fitted(25.0).value
    25.0
    """

    theorem: str
    of: str
    steps: Any
    terms: Mapping[str, Amount]  # with all constants 1
    constant: float | None = None  # fitted to measured values

    @property
    def summed(self) -> bool:
        """Whether the paper sums over the clients instead of taking means."""
        return SUMMED in self.of

    @property
    def shape(self) -> Amount:
        """The sum of the terms with all constants 1."""
        return sum(self.terms.values())

    @property
    def value(self) -> Amount:
        """The shape times the fitted constant."""
        if self.constant is None:
            raise MainstemError(
                f"{self.theorem}: holds up to a constant only: see .shape, or fit it to what was "
                "measured, .fitted(values)"
            )
        return self.constant * self.shape

    def fitted(self, measured: Any) -> "Rate":
        """The rate with its constant fitted to the measured values (least squares)."""
        values, shape = np.ravel(measured), np.ravel(self.shape)
        return self._replace(constant=float(values @ shape / (shape @ shape)))

    def __str__(self) -> str:
        here = float(np.ravel(self.shape)[-1])
        constant = "" if self.constant is None else f", constant fitted: {self.constant:.3g}"
        return (
            f"{self.theorem}: {self.of} grows like {here:.6g} ({_listed(self.terms)}), "
            f"up to a constant: no guarantee{constant}"
        )


def _listed(terms: Mapping[str, Amount]) -> str:
    return ", ".join(f"{name} {float(np.ravel(value)[-1]):.6g}" for name, value in terms.items())
