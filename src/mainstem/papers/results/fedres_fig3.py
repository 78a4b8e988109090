"""Accuracy against the number of clients: sensorless and mnist (Agarwal et al. 2020, Fig. 3)."""

from mainstem.papers.agarwal_claims import (
    over_clients,
)
from mainstem.papers.evidence import FAILS, UNDECIDED

RECORDED = {
    "sensorless: rises": (
        FAILS,
        None,
        "With the 2,200 rows that are there more clients have fewer samples each: 30 of C0 with 10 clients, 4 "
        "with 100. Accuracy falls by 4 points.",
    ),
    "mnist: rises": (
        UNDECIDED,
        None,
        "0.2 points from 10 to 100 clients: the own half of the features is learnt from 60 samples however many "
        "clients there are.",
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
