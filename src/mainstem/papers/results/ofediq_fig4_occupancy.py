"""Four methods on room occupancy with two layers of 64 (Kwon et al. 2023, Fig. 4)."""

from mainstem.papers import kwon
from mainstem.papers.evidence import HOLDS, NEARLY

LUCKY = (
    "4 points behind in four of five seeds. In the fifth the first model happens to call rooms empty, which most "
    "are, so that a hundred steps without learning cost nothing; five seeds with such a one decide nothing, and "
    "five without do."
)
RECORDED = {
    "fedomd": (NEARLY, HOLDS, LUCKY),
    "fedomd-ofedavg": (NEARLY, HOLDS, LUCKY),
}

RESULT = kwon.fig4(
    "ofediq-fig4-occupancy",
    "room_occupancy",
    regression=False,
    full={"clients": 1000, "steps": 2000, "seeds": 5},
    quick={"clients": 100, "steps": 500, "seeds": 10},
    minutes=9,
    recorded=RECORDED,
)
