"""Three methods on eight datasets with 50 clients (Agarwal et al. 2020, Fig. 1)."""

from mainstem.papers.agarwal_claims import comparison

RESULT = comparison(
    "fedres-fig1",
    "Fig. 1",
    clients=50,
    minutes=4,
    quick=("usps", "satimage", "letter", "pendigits"),
    recorded={},
)
