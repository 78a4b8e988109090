"""Accuracy against the number of clients under a delay of 20 (Agarwal et al. 2020, Fig. 11)."""

from mainstem.papers.agarwal_claims import late
from mainstem.papers.evidence import FAILS, HOLDS, UNDECIDED

GROWS = "It grows, to about twice that of 10 clients: the server adds up more late gradients."
LITTLE = "Within the spread at either number of clients."
NOTHING = "Within half a point of zero at either number of clients: there is nothing to overcome."
RECORDED = {
    **{
        f"{source}: overcome, FedRes": (FAILS, FAILS, GROWS)
        for source in ("mnist", "satimage", "usps", "letter", "pendigits")
    },
    **{
        f"{source}: overcome, FedRes": (UNDECIDED, None, LITTLE)
        for source in ("shuttle", "covtype")
    },
    **{
        f"{source}: overcome, FedRes, on arrival": (UNDECIDED, None, NOTHING)
        for source in (
            "mnist",
            "satimage",
            "sensorless",
            "letter",
            "pendigits",
            "shuttle",
            "covtype",
        )
    },
    "usps: overcome, FedRes, on arrival": (HOLDS, None, ""),  # from 0.03 points to none
}

RESULT = late("fedres-fig11", "Fig. 11", delay=20, minutes=12, quick=("usps",), recorded=RECORDED)
