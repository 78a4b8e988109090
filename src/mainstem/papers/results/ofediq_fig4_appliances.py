"""Four methods on appliances energy with two layers of 64 (Kwon et al. 2023, Fig. 4)."""

from mainstem.papers import kwon
from mainstem.papers.evidence import HOLDS, NEARLY

FEW = (
    "Its error is larger in each of the five seeds, by 1.1 to 8 times: too few and too far apart for a 99 % "
    "interval that does not reach zero. Ten seeds of the quick size decide it "
    "against OFedIQ, and some ten against OFedAvg."
)
RECORDED = {
    "fedomd": (NEARLY, HOLDS, FEW),
    "fedomd-ofedavg": (NEARLY, NEARLY, FEW),
}

RESULT = kwon.fig4(
    "ofediq-fig4-appliances",
    "appliances_energy",
    regression=True,
    full={"clients": 1000, "steps": 2000, "seeds": 5},
    quick={"clients": 100, "steps": 500, "seeds": 10},
    minutes=9,
    recorded=RECORDED,
)
