"""Accuracy against the number of clients under a delay of 80 (Agarwal et al. 2020, Fig. 12)."""

from mainstem.papers.agarwal_claims import late
from mainstem.papers.evidence import HOLDS

RECORDED = {
    "pendigits: overcome, FedRes": (HOLDS, None, ""),  # 20 rollouts cannot tell
    "pendigits: overcome, FedRes, on arrival": (HOLDS, None, ""),  # nothing to overcome
}

RESULT = late(
    "fedres-fig12", "Fig. 12", delay=80, minutes=12, quick=("pendigits",), recorded=RECORDED
)
