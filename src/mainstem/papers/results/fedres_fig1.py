"""Three methods on eight datasets with 50 clients (Agarwal et al. 2020, Fig. 1)."""

from mainstem.papers.agarwal_claims import PENDIGITS, TUNED, comparison
from mainstem.papers.evidence import NEARLY

RESULT = comparison(
    "fedres-fig1",
    "Fig. 1",
    clients=50,
    minutes=1.5,
    quick=("usps", "satimage", "letter", "pendigits"),
    recorded={**TUNED, "pendigits: near": (NEARLY, None, PENDIGITS)},
)
