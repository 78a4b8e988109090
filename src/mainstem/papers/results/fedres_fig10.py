"""Accuracy against the delay: letter, pendigits, shuttle, covtype (Agarwal et al. 2020, Fig. 10)."""

from functools import partial

from mainstem.papers.agarwal import APART
from mainstem.papers.agarwal_claims import (
    MODERATE,
    READINGS,
    ordered,
    over_delays,
)
from mainstem.papers.evidence import FAILS

WORSE = ("letter", "pendigits", "shuttle")

RECORDED = {
    "shuttle: worse, FedRes, on arrival": (
        FAILS,
        None,
        "Used on arrival it stays 3 to 4 points above Independent.",
    ),
}

RESULT = over_delays(
    "fedres-fig10",
    "Fig. 10",
    datasets=APART,
    judged={
        f"{source}: worse, {method}": (
            f"FedRes can perform worse than Independent at a moderate delay (50): {source}, {reading}.",
            partial(ordered, source=source, methods=(method, "Independent"), delay=MODERATE),
        )
        for source in WORSE
        for method, reading in READINGS.items()
    },
    minutes=8,
    quick=("pendigits", "shuttle"),
    recorded=RECORDED,
)
