"""Accuracy against the number of clients: sensorless and mnist (Agarwal et al. 2020, Fig. 3)."""

from mainstem.papers.agarwal_claims import over_clients

RESULT = over_clients(
    "fedres-fig3",
    "Fig. 3",
    datasets=("sensorless", "mnist"),
    minutes=4,
    quick=("sensorless", "mnist"),
    recorded={},
)
