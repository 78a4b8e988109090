"""Accuracy against the number of clients: letter and pendigits (Agarwal et al. 2020, Fig. 4)."""

from mainstem.papers.agarwal_claims import over_clients

RESULT = over_clients(
    "fedres-fig4",
    "Fig. 4",
    datasets=("letter", "pendigits"),
    minutes=4,
    quick=("letter", "pendigits"),
    recorded={},
)
