"""Accuracy against the number of clients under a delay of 80 (Agarwal et al. 2020, Fig. 12)."""

from mainstem.papers.agarwal_claims import late

RESULT = late(
    "fedres-fig12", "Fig. 12", delay=80, minutes=12, quick=("usps", "pendigits"), recorded={}
)
