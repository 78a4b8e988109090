"""Accuracy against the number of clients: the other four datasets (Agarwal et al. 2020, Fig. 8)."""

from mainstem.papers.agarwal_claims import over_clients

RESULT = over_clients(
    "fedres-fig8",
    "Fig. 8",
    datasets=("satimage", "usps", "shuttle", "covtype"),
    minutes=4,
    quick=("satimage", "shuttle"),
    recorded={},
)
