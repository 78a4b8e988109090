"""Accuracy against the delay: letter and pendigits (Agarwal et al. 2020, Fig. 5)."""

from functools import partial

from mainstem.papers.agarwal_claims import (
    LATE,
    LONG,
    MODEST,
    READINGS,
    lost,
    over_delays,
)
from mainstem.papers.evidence import FAILS

DATASETS = ("letter", "pendigits")

RECORDED = {
    "letter: modest, FedRes": (FAILS, FAILS, LATE),
    "pendigits: modest, FedRes": (FAILS, FAILS, LATE),
}

RESULT = over_delays(
    "fedres-fig5",
    "Fig. 5",
    datasets=DATASETS,
    judged={
        f"{source}: modest, {method}": (
            f"A modest degradation with delay: {source}, {reading}.",
            partial(lost, source=source, method=method, allowed=MODEST),
        )
        for source in DATASETS
        for method, reading in READINGS.items()
    },
    minutes=4,
    quick=DATASETS,
    recorded=RECORDED,
    delays=(0, LONG),
)
