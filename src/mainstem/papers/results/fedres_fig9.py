"""Accuracy against the delay: mnist, satimage, sensorless, usps (Agarwal et al. 2020, Fig. 9)."""

from functools import partial

from mainstem.papers.agarwal import TOGETHER
from mainstem.papers.agarwal_claims import (
    CLOSE,
    LATE,
    MODERATE,
    READINGS,
    Judged,
    lost,
    ordered,
    over_delays,
    suffers,
)
from mainstem.papers.evidence import FAILS, HARDLY, HOLDS, UNDECIDED, Evidence, all_of
from mainstem.papers.result import Numbers

ROBUST = ("mnist", "satimage", "usps")


def always_best(numbers: Numbers, source: str, method: str) -> Evidence:
    """Above both baselines, in the same reading, at every delay."""
    return all_of(
        *(
            ordered(numbers, source, (baseline, method), delay=int(delay))
            for baseline in (method.replace("FedRes", "Central"), "Independent")
            for delay in numbers["delays"]
        )
    )


def judged() -> Judged:
    """Claims: robust to delays on three of four datasets; worse on sensorless."""
    found: Judged = {}
    for source in ROBUST:
        for method, reading in READINGS.items():
            central = method.replace("FedRes", "Central")
            found[f"{source}: robust, {central}"] = (
                f"Central is robust with delays: {source}, {reading}.",
                partial(lost, source=source, method=central, allowed=CLOSE),
            )
            found[f"{source}: robust, {method}"] = (
                f"FedRes is robust with delays: {source}, {reading}.",
                partial(lost, source=source, method=method, allowed=CLOSE),
            )
            found[f"{source}: best, {method}"] = (
                f"FedRes constantly outperforms both baselines: {source}, {reading}.",
                partial(always_best, source=source, method=method),
            )
    for method, reading in READINGS.items():
        found[f"sensorless: suffers, {method}"] = (
            f"FedRes suffers from degradation with delays: sensorless, {reading}.",
            partial(suffers, source="sensorless", method=method),
        )
        found[f"sensorless: above, {method}"] = (
            f"FedRes still outperforms Central when the delay is not excessive (50): sensorless, {reading}.",
            partial(
                ordered,
                source="sensorless",
                methods=(method.replace("FedRes", "Central"), method),
                delay=MODERATE,
            ),
        )
    return found


NARROW = "Above Central by 5 to 7 points, and within half a point of Independent."
RECORDED = {
    f"{source}: {claim}": (FAILS, FAILS, LATE)
    for source in ROBUST
    for claim in ("robust, Central", "robust, FedRes", "best, FedRes")
} | {
    "sensorless: above, FedRes": (HARDLY, None, LATE),
    "sensorless: suffers, FedRes, on arrival": (HOLDS, None, ""),
    "satimage: best, FedRes, on arrival": (UNDECIDED, None, NARROW),
    "usps: best, FedRes, on arrival": (UNDECIDED, None, NARROW),
}

RESULT = over_delays(
    "fedres-fig9",
    "Fig. 9",
    datasets=TOGETHER,
    judged=judged(),
    minutes=8,
    quick=("satimage", "sensorless"),
    recorded=RECORDED,
)
