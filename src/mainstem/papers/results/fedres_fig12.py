"""Accuracy against the number of clients under a delay of 80 (Agarwal et al. 2020, Fig. 12)."""

from mainstem.papers.agarwal import DATASETS
from mainstem.papers.agarwal_claims import late
from mainstem.papers.evidence import NEARLY, UNDECIDED

LARGE = (
    "20 to 39 points are lost at either number of clients, down to an accuracy of 0.5 to 0.7: more clients "
    "do not bring them back, and what the two differ by is within the spread."
)
NOTHING = "Within one point of zero at either number of clients: there is nothing to overcome."
RECORDED = {
    **{f"{source}: overcome, FedRes": (UNDECIDED, None, LARGE) for source in DATASETS},
    **{
        f"{source}: overcome, FedRes, on arrival": (UNDECIDED, None, NOTHING) for source in DATASETS
    },
    "sensorless: overcome, FedRes": (
        NEARLY,
        None,
        "From 23 points to 19, at an accuracy of 0.5 for either number of clients.",
    ),
    "usps: overcome, FedRes": (NEARLY, None, LARGE),
    "usps: overcome, FedRes, on arrival": (
        NEARLY,
        None,
        "A tenth of a point, at the edge of the spread.",
    ),
}

RESULT = late(
    "fedres-fig12", "Fig. 12", delay=80, minutes=13, quick=("pendigits",), recorded=RECORDED
)
