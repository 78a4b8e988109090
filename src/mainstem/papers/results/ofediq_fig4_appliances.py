"""Four methods on appliances energy with two layers of 64 (Kwon et al. 2023, Fig. 4)."""

from mainstem.papers import kwon

RESULT = kwon.fig4(
    "ofediq-fig4-appliances",
    "appliances_energy",
    regression=True,
    full={"clients": 1000, "steps": 2000, "seeds": 5},
    quick={"clients": 100, "steps": 500, "seeds": 10},
    minutes=6,
)
