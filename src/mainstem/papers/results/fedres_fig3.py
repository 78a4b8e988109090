"""Accuracy against the number of clients: sensorless and mnist (Agarwal et al. 2020, Fig. 3)."""

from mainstem.papers.agarwal_claims import (
    over_clients,
)
from mainstem.papers.evidence import FAILS, HOLDS, NEARLY

RECORDED = {
    "sensorless: rises": (
        FAILS,
        None,
        "With the 2,200 rows that are there more clients have fewer samples each: 30 of C0 with 10 clients, 4 "
        "with 100. Accuracy falls by 4 points.",
    ),
    "sensorless: near": (
        HOLDS,
        NEARLY,
        "Level with Independent at 10 clients: 20 rollouts cannot always tell that from two points below.",
    ),
    "mnist: rises": (
        NEARLY,
        None,
        "0.2 to 0.5 points from 10 to 100 clients: the own half of the features is learnt from 60 samples "
        "however many clients there are.",
    ),
}

RESULT = over_clients(
    "fedres-fig3",
    "Fig. 3",
    datasets=("sensorless", "mnist"),
    minutes=4,
    quick=("sensorless", "mnist"),
    recorded=RECORDED,
)
