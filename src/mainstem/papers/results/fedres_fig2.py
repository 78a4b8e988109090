"""Three methods on eight datasets with 10 clients (Agarwal et al. 2020, Fig. 2)."""

from mainstem.papers.agarwal_claims import (
    AHEAD,
    BEHIND,
    LETTER,
    SHUTTLE,
    UNTUNED,
    comparison,
)
from mainstem.papers.evidence import FAILS, HOLDS, UNDECIDED

RECORDED = {
    "mnist: type": (FAILS, None, UNTUNED),
    "satimage: type": (FAILS, FAILS, BEHIND),
    "sensorless: type": (FAILS, None, BEHIND),
    "usps: type": (FAILS, FAILS, UNTUNED),
    "letter: near": (FAILS, None, LETTER),
    "shuttle: type": (UNDECIDED, None, SHUTTLE),
    "ahead": (UNDECIDED, None, AHEAD),
    "pendigits: near": (HOLDS, None, ""),
}

RESULT = comparison(
    "fedres-fig2",
    "Fig. 2",
    clients=10,
    minutes=4,
    quick=("usps", "satimage", "letter", "pendigits"),
    recorded=RECORDED,
)
