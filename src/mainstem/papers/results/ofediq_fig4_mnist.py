"""Four methods on MNIST with the CNN (Kwon et al. 2023, Fig. 4)."""

from mainstem.papers import kwon
from mainstem.papers.evidence import HOLDS

RECORDED = {  # with 500 clients and 200 steps the methods are not yet close
    "limit": (HOLDS, None, ""),
    "equal": (HOLDS, None, ""),
}

RESULT = kwon.fig4(
    "ofediq-fig4-mnist",
    "mnist",
    regression=False,
    full=kwon.FULL_MNIST,
    quick=kwon.QUICK_MNIST,
    minutes=4,
    gpu=True,
    recorded=RECORDED,
)
