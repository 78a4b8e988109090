"""Accuracy against the number of clients under a delay of 20 (Agarwal et al. 2020, Fig. 11)."""

from mainstem.papers.agarwal_claims import late
from mainstem.papers.evidence import FAILS, NEARLY, UNDECIDED

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
    "sensorless: overcome, FedRes": (
        NEARLY,
        None,
        "From 4 to 7 points to 3, at 10 and 100 clients.",
    ),
    "usps: overcome, FedRes, on arrival": (NEARLY, None, "0.03 points, at the edge of the spread."),
}

RESULT = late("fedres-fig11", "Fig. 11", delay=20, minutes=12, quick=("usps",), recorded=RECORDED)
