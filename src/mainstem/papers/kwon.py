"""OFedIQ's experiments (Kwon, Park and Hong 2023, Section 5): four datasets divided among 1,000 clients."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

import mainstem as ms
from mainstem.base import Algorithm, Problem, Stream
from mainstem.papers.evidence import Evidence, falling, near, not_below, rising
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

STEP = 0.01  # "for all experiments, which is sufficient for their fair comparisons"
HAIR = 0.01  # of accuracy
RATIO = 1.1  # of mean squared errors
CHOSEN = (
    "Seeds (20 for MNIST, 5 for the others) and T = 1,000 or 2,000: the paper's axes are not in its text.",
    "Networks start with He's normal weights and zero biases, as the paper does not say.",
    "Features scaled to [0, 1]; the regularised loss of Model III has weight 0.",
    '"Almost" is one point of accuracy, or 10 % of a mean squared error.',
)
FULL_MNIST = {"clients": 1000, "steps": 1000, "seeds": 20}
QUICK_MNIST = {"clients": 500, "steps": 200, "seeds": 5, "model": "softmax"}
IN_QUICK = "The quick size has a linear model (softmax) in the place of the CNN, which wants a GPU."


@functools.cache
def world(source: str, clients: int, model: str = "network") -> tuple[Problem, Stream]:
    """A dataset, shuffled, repeated and divided, and its network: the CNN for images, else two layers of 64."""
    table = ms.datasets.load(source)
    if model == "softmax":
        used = len(table.target) - table.held_out
        flat = table.features[:used].reshape(used, -1)
        dealt = ms.streams.arrays(flat, table.target[:used], clients)
        return ms.problems.softmax(flat.shape[1], table.classes or 0), dealt
    stream = ms.streams.dataset(source, clients)
    if table.features.ndim == 3:
        return ms.problems.cnn(), stream
    return ms.problems.mlp(table.features.shape[1], table.classes), stream


def planned(problem: Problem, budget: float) -> Algorithm:
    """OFedIQ with the parameters of Algorithm 3."""
    plan = ms.plan(budget, problem.parameters)
    return ms.ofediq(STEP, plan.rate, levels=plan.levels, blocks=plan.blocks)


def periodic(period: int) -> Algorithm:
    """FedOMD(L) as in this paper's figures: all clients upload every L steps, and decide with the broadcast."""
    return ms.ofediq(STEP, period=period)


def curve(
    runner: Runner,
    algorithm: Algorithm,
    source: str,
    *,
    clients: int,
    steps: int,
    seeds: int,
    model: str = "network",
) -> np.ndarray:
    """Accuracy(t) or MSE(t), [seeds, steps]."""
    problem, stream = world(source, clients, model)
    run = runner.run(algorithm, problem, stream, steps=steps, seeds=seeds, measure=())
    return np.atleast_2d(run.accuracy if "correct" in run.columns else run.mse)


def final(numbers: Numbers, *names: str, at: int | None = None) -> dict[str, np.ndarray]:
    """The last values of these curves, or those at step `at`."""
    return {name: numbers[name][:, -1 if at is None else at - 1] for name in names}


# --- Fig. 4 ---------------------------------------------------------------------------------------

SAVED = {"90 %": 0.1, "99 %": 0.01}


def compared(runner: Runner, *, source: str, **size: Any) -> Numbers:
    """FedOGD, and three algorithms that save 90 % and 99 % of the uplink."""
    problem, _ = world(source, size["clients"], size.get("model", "network"))
    numbers = {"FedOGD": curve(runner, ms.fedogd(STEP), source, **size)}
    for saved, budget in SAVED.items():
        ways = {
            "OFedIQ": planned(problem, budget),
            "OFedAvg": ms.ofedavg(STEP, budget),
            "FedOMD": periodic(round(1 / budget)),
        }
        for name, algorithm in ways.items():
            numbers[f"{name}, {saved} saved"] = curve(runner, algorithm, source, **size)
    return numbers


def not_worse(numbers: Numbers, one: str, other: str, regression: bool) -> Evidence:
    """The first curve ends at least almost as good as the second."""
    ends = final(numbers, one, other)
    if not regression:
        return not_below(ends, HAIR)
    a, b = ends.values()
    text = falling({other: b, one: a}).measured.replace(">", "and")
    return Evidence(
        f"MSE {text}, ratio {np.mean(a / b):.3f}, allowed {RATIO}", (np.log(RATIO * b / a),)
    )


def same(numbers: Numbers, one: str, other: str, regression: bool) -> Evidence:
    """The two curves end almost equal."""
    if not regression:
        return near(final(numbers, one, other), HAIR)
    there, back = (not_worse(numbers, *pair, True) for pair in ((one, other), (other, one)))
    return Evidence(there.measured, there.margins + back.margins)


def ahead(numbers: Numbers, one: str, other: str, regression: bool) -> Evidence:
    """The first curve ends better than the second by more than `HAIR`, or by more than the factor `RATIO` of
    the MSE."""
    ends = final(numbers, one, other)
    if not regression:
        a, b = ends.values()
        return Evidence(rising({other: b, one: a}).measured, (a - b - HAIR,))
    a, b = ends.values()
    return Evidence(f"MSE {falling({other: b, one: a}).measured}", (np.log(b / (RATIO * a)),))


def fig4(
    name: str,
    source: str,
    *,
    regression: bool,
    full: Mapping[str, Any],
    quick: Mapping[str, Any],
    minutes: float,
    gpu: bool = False,
    recorded: Mapping[str, tuple[str | None, str | None, str]] | None = None,
) -> Result:
    """A panel of Fig. 4; `recorded` has (full, quick, why) for claims that do not simply hold."""
    judged = {
        "limit": (
            "At 99 % saving the planned OFedIQ almost achieves the performance of FedOGD.",
            lambda n: not_worse(n, "OFedIQ, 99 % saved", "FedOGD", regression),
        ),
        "ofedavg": (
            "At 99 % saving the planned OFedIQ is at least as good as OFedAvg.",
            lambda n: not_worse(n, "OFedIQ, 99 % saved", "OFedAvg, 99 % saved", regression),
        ),
        "fedomd": (
            "At 99 % saving FedOMD yields very poor performance: far behind the planned OFedIQ.",
            lambda n: ahead(n, "OFedIQ, 99 % saved", "FedOMD, 99 % saved", regression),
        ),
        "fedomd-ofedavg": (
            "At 99 % saving FedOMD is far behind OFedAvg too.",
            lambda n: ahead(n, "OFedAvg, 99 % saved", "FedOMD, 99 % saved", regression),
        ),
        "equal": (
            "At 90 % saving OFedAvg has the same performance as the planned OFedIQ.",
            lambda n: same(n, "OFedIQ, 90 % saved", "OFedAvg, 90 % saved", regression),
        ),
    }
    noted = recorded or {}
    claims = tuple(
        Claim(says, shows, *noted[key]) if key in noted else Claim(says, shows)
        for key, (says, shows) in judged.items()
    )

    def draw(numbers: Numbers) -> Any:
        titled = {
            f"{saved} of the uplink saved": {
                "FedOGD" if key == "FedOGD" else key.partition(",")[0]: numbers[key]
                for key in numbers
                if key == "FedOGD" or key.endswith(f"{saved} saved")
            }
            for saved in SAVED
        }
        label, log = ("MSE(t), target in [0, 1]", "xy") if regression else ("Accuracy(t)", "x")
        return figures.panels(titled, label, log=log, across="time step t")

    return Result(
        name=name,
        paper=f"Kwon, Park and Hong 2023, Fig. 4 ({source.replace('_', ' ')})",
        about="Running accuracy or error of four methods at 90 % and 99 % saving of the uplink.",
        full={"source": source, **full},
        quick={"source": source, **quick},
        measure=compared,
        claims=claims,
        draw=draw,
        minutes=minutes,
        chosen=(*CHOSEN, IN_QUICK) if gpu else CHOSEN,
        gpu=gpu,
    )
