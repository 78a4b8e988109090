"""Accuracy against the number of clients: letter and pendigits (Agarwal et al. 2020, Fig. 4)."""

from mainstem.papers.agarwal_claims import (
    LETTER,
    PENDIGITS,
    over_clients,
)
from mainstem.papers.evidence import FAILS, NEARLY

RECORDED = {
    "letter: flat": (
        NEARLY,
        None,
        "It falls by 0.2 to 1.2 points from 10 to 100 clients, too close to the two points allowed to tell.",
    ),
    "letter: near": (FAILS, None, LETTER),
    "pendigits: near": (NEARLY, None, PENDIGITS),
}

RESULT = over_clients(
    "fedres-fig4",
    "Fig. 4",
    datasets=("letter", "pendigits"),
    minutes=4,
    quick=("letter", "pendigits"),
    recorded=RECORDED,
)
