"""Three methods on eight datasets with 10 clients (Agarwal et al. 2020, Fig. 2)."""

from mainstem.papers.agarwal_claims import LETTER, PENDIGITS, TUNED, comparison
from mainstem.papers.evidence import HARDLY, NEARLY

RESULT = comparison(
    "fedres-fig2",
    "Fig. 2",
    clients=10,
    minutes=1.5,
    quick=("usps", "satimage", "letter", "pendigits"),
    recorded={
        **TUNED,
        "letter: near": (HARDLY, None, LETTER),
        "pendigits: near": (NEARLY, None, PENDIGITS),
    },
)
