"""The average loss of SGD, ERM and fictitious play (Agarwal et al. 2020, Fig. 6)."""

from typing import Any

import numpy as np

from mainstem.papers import fictitious_play
from mainstem.papers.evidence import Evidence, shown
from mainstem.papers.fictitious_play import ERM, PLAY, SGD
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

FACTOR = 3.0  # the least ratio that counts as "highly sub-optimal"
GONE, LEFT = 1e-6, 1e-3  # a loss that has vanished, and one that has not; it begins at 0.25


def measure(runner: Runner, **size: int) -> Numbers:
    """Losses [seeds, steps] of each rule."""
    return {rule: fictitious_play.played(runner, rule, **size).loss for rule in (SGD, ERM, PLAY)}


def average(losses: np.ndarray) -> np.ndarray:
    """The average loss so far."""
    return np.asarray(np.cumsum(losses, axis=1) / np.arange(1, losses.shape[1] + 1))


def suboptimal(numbers: Numbers) -> Evidence:
    """The ratio of fictitious play's final average loss to that of the others, for each rollout."""
    final = {rule: np.log10(losses.mean(axis=1)) for rule, losses in numbers.items()}
    ratios = {rule: final[PLAY] - final[rule] for rule in (SGD, ERM)}
    medians = ", ".join(
        f"{rule} {np.median(losses.mean(axis=1)):.4f}" for rule, losses in numbers.items()
    )
    text = ", ".join(f"10^({shown(ratio)}) times that of {rule}" for rule, ratio in ratios.items())
    text = f"medians: {medians}; geometric means: {PLAY} has {text}, wanted {FACTOR:g} times"
    return Evidence(text, tuple(ratio - np.log10(FACTOR) for ratio in ratios.values()))


def slower(numbers: Numbers) -> Evidence:
    """Over the last tenth of the steps, the others' loss has vanished and fictitious play's has not."""
    late = {rule: each[:, -each.shape[1] // 10 :].mean(axis=1) for rule, each in numbers.items()}
    most = {rule: late[rule].max(keepdims=True) for rule in (SGD, ERM)}
    left = np.log10(late[PLAY])
    text = ", ".join(f"{rule}: at most {each[0]:.1g}" for rule, each in most.items())
    text = f"loss over the last tenth, {text} in any rollout, {PLAY}: 10^({shown(left)})"
    return Evidence(text, (*(GONE - each for each in most.values()), left - np.log10(LEFT)))


def draw(numbers: Numbers) -> Any:
    """The paper's figure, on logarithmic axes."""
    steps = numbers[SGD].shape[1]
    at = np.unique(np.geomspace(1, steps, 400).astype(int))
    found = {
        rule: np.median(average(losses), axis=0)[None, at - 1] for rule, losses in numbers.items()
    }
    return figures.curves(found, "average loss (median of rollouts)", steps=at, log="xy")


RESULT = Result(
    name="fedres-fig6",
    paper=f"{fictitious_play.PAPER}, Fig. 6",
    about="The average loss of FedRes.SGD, FedRes.ERM and fictitious play where both sides must move.",
    full={"steps": 20000, "seeds": 50},
    quick={"steps": 20000, "seeds": 50},
    measure=measure,
    claims=(
        Claim(
            "The fictitious-play strategy is highly sub-optimal (at least three times).", suboptimal
        ),
        Claim("It takes significantly more rounds to converge.", slower),
    ),
    draw=draw,
    minutes=0.4,
    chosen=fictitious_play.CHOSEN,
)
