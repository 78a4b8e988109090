"""Four methods on air quality with two layers of 64 (Kwon et al. 2023, Fig. 4)."""

from mainstem.papers import kwon
from mainstem.papers.evidence import HOLDS, NEARLY

FEW = (
    "Its error is larger in each of the five seeds, by 1.6 to 13 times: too few and too far apart for a 99 % "
    "interval that does not reach zero. Ten seeds of the quick size decide it."
)
RECORDED = {
    "limit": (HOLDS, NEARLY, "100 clients are few for 1 % of the uplink: 1 to 4 % above FedOGD."),
    "fedomd": (NEARLY, HOLDS, FEW),
    "fedomd-ofedavg": (NEARLY, HOLDS, FEW),
}

RESULT = kwon.fig4(
    "ofediq-fig4-air",
    "air_quality",
    regression=True,
    full={"clients": 1000, "steps": 2000, "seeds": 5},
    quick={"clients": 100, "steps": 500, "seeds": 10},
    minutes=9,
    recorded=RECORDED,
)
