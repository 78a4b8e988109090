"""Three methods on eight datasets with 10 clients (Agarwal et al. 2020, Fig. 2)."""

from mainstem.papers.agarwal_claims import TUNED, comparison
from mainstem.papers.evidence import HOLDS

RESULT = comparison(
    "fedres-fig2",
    "Fig. 2",
    clients=10,
    minutes=1.5,
    quick=("usps", "satimage", "letter", "pendigits"),
    recorded={**TUNED, "pendigits: near": (HOLDS, None, "")},
)
