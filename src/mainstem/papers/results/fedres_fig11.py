"""Accuracy against the number of clients under a delay of 20 (Agarwal et al. 2020, Fig. 11)."""

from mainstem.papers.agarwal_claims import late
from mainstem.papers.evidence import FAILS, HOLDS

RECORDED = {
    "usps: overcome, FedRes": (
        FAILS,
        FAILS,
        "It grows, from 0.5 points with 10 clients to 0.8 with 50: the server adds up more late gradients.",
    ),
    "usps: overcome, FedRes, on arrival": (HOLDS, None, ""),  # nothing to overcome
}

RESULT = late("fedres-fig11", "Fig. 11", delay=20, minutes=12, quick=("usps",), recorded=RECORDED)
