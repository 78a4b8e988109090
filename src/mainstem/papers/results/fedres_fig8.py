"""Accuracy against the number of clients: the other four datasets (Agarwal et al. 2020, Fig. 8)."""

from mainstem.papers.agarwal_claims import (
    over_clients,
)
from mainstem.papers.evidence import HARDLY, HOLDS, NEARLY, UNDECIDED

RECORDED = {
    "satimage: rises": (UNDECIDED, None, "0.1 points from 10 to 100 clients."),
    "shuttle: near": (
        HOLDS,
        NEARLY,
        "It is ahead, but 20 rollouts of shuttle differ so much that they cannot always tell.",
    ),
    "usps: rises": (
        HARDLY,
        None,
        "It falls by 0.4 points: with 100 clients there are fewer than 30 samples of C0 for each.",
    ),
    "shuttle: flat": (
        UNDECIDED,
        None,
        "0.2 points, but rollouts differ by more than the two points allowed: the classes of shuttle are uneven.",
    ),
    "covtype: flat": (
        UNDECIDED,
        None,
        "It rises by 1.5 points from 10 to 100 clients, too close to the two points allowed to tell.",
    ),
}

RESULT = over_clients(
    "fedres-fig8",
    "Fig. 8",
    datasets=("satimage", "usps", "shuttle", "covtype"),
    minutes=4,
    quick=("satimage", "shuttle"),
    recorded=RECORDED,
)
