"""The path of the shared model from (1, 0) to (0, 1) (Agarwal et al. 2020, Fig. 7)."""

from typing import Any

import numpy as np

from mainstem.papers import fictitious_play
from mainstem.papers.evidence import Evidence, shown
from mainstem.papers.fictitious_play import ERM, PLAY, SGD
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

CLOSE, FAR = 0.01, 0.1  # distances from the optimum; the initial distance is sqrt(2)
EARLY = 2000
MOVED = 0.5  # a rule is stuck if ten times as many steps leave more than this share of the distance


def measure(runner: Runner, horizons: tuple[int, ...], seeds: int) -> Numbers:
    """w^g [seeds, horizons, 2] of each rule: a shorter run is a prefix of a longer one."""

    def final(rule: str, steps: int) -> np.ndarray:
        if steps == 0:
            return np.tile(fictitious_play.FIRST, (seeds, 1))
        return np.asarray(fictitious_play.played(runner, rule, steps=steps, seeds=seeds).model)

    found = {
        rule: np.stack([final(rule, steps) for steps in horizons], axis=1)
        for rule in (SGD, ERM, PLAY)
    }
    return found | {"at": np.array([horizons])}


def at(numbers: Numbers, rule: str, steps: int) -> np.ndarray:
    """The distance from the optimum [seeds] after this many steps."""
    where = int(np.argmin(np.abs(numbers["at"][0] - steps)))
    return fictitious_play.distance(numbers[rule][:, where])


def arrive(numbers: Numbers) -> Evidence:
    """SGD and ERM have reached the optimum after a tenth of the paper's run, in every rollout."""
    most = {rule: at(numbers, rule, EARLY).max(keepdims=True) for rule in (SGD, ERM)}
    text = ", ".join(f"{rule}: at most {each[0]:.1g}" for rule, each in most.items())
    text = f"distance from (0, 1) after {EARLY:,} steps in any rollout, {text}, allowed {CLOSE:g}"
    return Evidence(text, tuple(CLOSE - each for each in most.values()))


def stuck(numbers: Numbers) -> Evidence:
    """Fictitious play is far from the optimum, and ten times as many steps have not brought it much nearer."""
    last = int(numbers["at"].max())
    far, before = np.log10(at(numbers, PLAY, last)), np.log10(at(numbers, PLAY, last // 10))
    text = (
        f"distance from (0, 1): 10^({shown(before)}) after {last // 10:,} steps, 10^({shown(far)}) after "
        f"{last:,}; wanted above {FAR:g}, and more than {MOVED:g} of what it was"
    )
    return Evidence(text, (far - np.log10(FAR), far - before - np.log10(MOVED)))


def draw(numbers: Numbers) -> Any:
    """The paper's figure: a panel for each rule, a line for each component."""
    names = ("first component of $w_t^g$", "second component of $w_t^g$")
    titled = {
        rule: {
            name: np.median(numbers[rule][..., place], axis=0)[None]
            for place, name in enumerate(names)
        }
        for rule in (SGD, ERM, PLAY)
    }
    steps = numbers["at"][0] + 1
    return figures.panels(titled, "median of rollouts", steps=steps, log="x", marked=True)


RESULT = Result(
    name="fedres-fig7",
    paper=f"{fictitious_play.PAPER}, Fig. 7",
    about="The components of the global model over time: SGD and ERM arrive, fictitious play gets stuck.",
    full={"horizons": (0, 10, 30, 100, 200, 500, 1000, 2000, 5000, 10000, 20000), "seeds": 50},
    quick={"horizons": (0, 10, 30, 100, 200, 500, 1000, 2000, 10000), "seeds": 50},
    measure=measure,
    claims=(
        Claim("FedRes.SGD and FedRes.ERM can quickly find the optimal solutions.", arrive),
        Claim("The fictitious-play strategy gets stuck before reaching the optimum.", stuck),
    ),
    draw=draw,
    minutes=0.8,
    chosen=(
        *fictitious_play.CHOSEN,
        "w^g is looked at after 0 to 20,000 steps at places nearly evenly spaced on a logarithmic axis.",
    ),
)
