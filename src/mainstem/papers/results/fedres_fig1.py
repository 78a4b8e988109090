"""Three methods on eight datasets with 50 clients (Agarwal et al. 2020, Fig. 1)."""

from mainstem.papers.agarwal_claims import (
    AHEAD,
    BEHIND,
    LETTER,
    PENDIGITS,
    SHUTTLE,
    UNTUNED,
    comparison,
)
from mainstem.papers.evidence import FAILS, UNDECIDED

RECORDED = {
    "mnist: type": (FAILS, None, UNTUNED),
    "satimage: type": (FAILS, FAILS, BEHIND),
    "sensorless: type": (FAILS, None, BEHIND),
    "usps: type": (FAILS, FAILS, UNTUNED),
    "letter: near": (FAILS, None, LETTER),
    "shuttle: type": (UNDECIDED, None, SHUTTLE),
    "ahead": (UNDECIDED, None, AHEAD),
    "pendigits: near": (UNDECIDED, None, PENDIGITS),
}

RESULT = comparison(
    "fedres-fig1",
    "Fig. 1",
    clients=50,
    minutes=4,
    quick=("usps", "satimage", "letter", "pendigits"),
    recorded=RECORDED,
)
