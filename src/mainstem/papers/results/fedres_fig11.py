"""Accuracy against the number of clients under a delay of 20 (Agarwal et al. 2020, Fig. 11)."""

from mainstem.papers.agarwal_claims import late

RESULT = late(
    "fedres-fig11", "Fig. 11", delay=20, minutes=12, quick=("usps", "pendigits"), recorded={}
)
