"""Algorithm 3's parameters and the bounds by which they are chosen (Kwon et al. 2023, Section 4.2)."""

from typing import Any

import numpy as np

import mainstem as ms
from mainstem import theory
from mainstem.papers.evidence import Evidence, all_of, between
from mainstem.papers.result import Claim, Numbers, Result
from mainstem.papers.runner import Runner
from mainstem.report import figures

PARAMETERS = 34826
CLIENTS = 1000  # as in the experiments; it enters through 1 / K
PERIODS = (1, 2, 5, 10, 20, 50, 100)


def measure(runner: Runner) -> Numbers:
    """Evaluates formulas; nothing is run."""
    numbers = {}
    for budget in (0.1, 0.01):
        plan = ms.plan(budget, PARAMETERS)
        numbers[f"plan {budget:g}"] = np.array([[plan.levels, plan.blocks, plan.rate, plan.spent]])
        numbers[f"alpha {budget:g}"] = np.array(
            [[_alpha(plan), theory.ofediq_alpha(clients=CLIENTS, rate=budget)]]
        )
        pairs = [
            theory.ofediq_section_4_2_1(clients=CLIENTS, rate=period * budget, period=period)
            for period in PERIODS
            if period * budget <= 1
        ]
        numbers[f"ratio {budget:g}"] = np.array([[pair.ratio for pair in pairs]])
    rates = np.linspace(0.005, 0.13, 26)
    both = [theory.ofediq_equation_15(float(rate)) for rate in rates]
    numbers["rates"] = rates
    numbers["plain"] = np.array([[each.one for each in both]])
    numbers["quantised"] = np.array([[each.other for each in both]])
    return numbers


def _alpha(plan: theory.Plan) -> float:
    """Table 1's alpha of a plan."""
    return theory.ofediq_alpha(
        clients=CLIENTS,
        rate=plan.rate,
        levels=plan.levels,
        blocks=plan.blocks,
        parameters=PARAMETERS,
    )


def published(numbers: Numbers, budget: float, levels: int, blocks: int, rate: float) -> Evidence:
    """The parameters are as printed; the rate to the digits that are printed."""
    found = numbers[f"plan {budget:g}"][0]
    half = 0.5 * 10.0 ** -len(f"{rate}".partition(".")[2])
    text = f"s = {found[0]:.0f}, b = {found[1]:.0f}, p = {found[2]:.6f}"
    gaps = (found[0] - levels, found[1] - blocks)
    return Evidence(
        text,
        (*(np.array([0.5 - abs(gap)]) for gap in gaps), np.array([half - abs(found[2] - rate)])),
    )


def prefactors(numbers: Numbers) -> Evidence:
    """Table 1's alpha, and half of it, compared with OFedAvg's."""
    table, averaged = numbers["alpha 0.1"][0]
    return all_of(
        between("alpha with the prefactor 2 of (15):", np.array([table / 2]), 4.5355, 4.5365),
        between("with the prefactor 4 of Table 1:", np.array([table]), 9.071, 9.073),
        between("OFedAvg at the same traffic:", np.array([averaged]), 19.999, 20.001),
        Evidence("so the claim's ordering holds with either", (np.array([averaged - table]),)),
    )


def needless(numbers: Numbers) -> Evidence:
    """The ratio of bounds is above 1 for every period above 1, and increases."""
    found = []
    for budget in (0.1, 0.01):
        ratios = numbers[f"ratio {budget:g}"][0]
        text = ", ".join(f"L = {p}: {r:.2f}" for p, r in zip(PERIODS, ratios, strict=False))
        margins = (*(ratios[1:] - 1), *np.diff(ratios))
        found.append(Evidence(f"at {budget:g}, {text}", tuple(np.array([m]) for m in margins)))
    return all_of(*found)


def pays(numbers: Numbers) -> Evidence:
    """(15): by the bounds, quantised uploads with a higher rate are better than plain ones."""
    ratio = numbers["quantised"] / numbers["plain"]
    worst = float(np.max(numbers["quantised"] * numbers["rates"]))
    text = f"at most {ratio.max():.3f} of plain for p from 0.005 to 0.13, alpha at most {worst:.3f} / p"
    return Evidence(text, (1 - ratio.max(keepdims=True)[0], np.array([1.357 - worst])))


def draw(numbers: Numbers) -> Any:
    """The bound on regret by period and by quantiser, at equal traffic."""
    plt = figures.pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0), layout="constrained")
    for budget in (0.1, 0.01):
        ratios = numbers[f"ratio {budget:g}"][0]
        left.plot(PERIODS[: len(ratios)], ratios, "o-", label=f"p / L = {budget:g}")
    left.set(xscale="log", yscale="log", xlabel="transmission period L")
    left.set(ylabel=r"$\alpha(L, p)\;/\;\alpha(1, p / L)$", title="Section 4.2.1")
    right.plot(numbers["rates"], numbers["plain"][0], label="OFedAvg(p): 2 / p")
    right.plot(numbers["rates"], numbers["quantised"][0], label="OFedIQ(1, p', ⌈40 p⌉, D / 100)")
    right.set(
        yscale="log",
        xlabel="share p of the plain uplink",
        ylabel=r"$\alpha$",
        title="Equation (15)",
    )
    for axes in (left, right):
        axes.legend(frameon=False, fontsize="small")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    plt.close(figure)
    return figure


RESULT = Result(
    name="ofediq-planner",
    paper="Kwon, Park and Hong 2023, Section 4.2 (Algorithm 3, Table 1)",
    about="Both published parameter sets, and the comparisons of bounds behind them: formulas only.",
    full={},
    quick={},
    measure=measure,
    claims=(
        Claim(
            "A tenth of the traffic with D = 34,826: s = 17, b = 1134, p = 0.5151.",
            lambda numbers: published(numbers, 0.1, 17, 1134, 0.5151),
        ),
        Claim(
            "A hundredth: s = 3, b = 777, p = 0.086.",
            lambda numbers: published(numbers, 0.01, 3, 777, 0.086),
        ),
        Claim(
            "The planned parameters have 4.536 where OFedAvg has 20 (Table 1 itself gives twice that).",
            prefactors,
        ),
        Claim(
            "L > 1 is needless: at equal traffic the bound is worse, and ever more so.", needless
        ),
        Claim(
            "Quantisation pays at equal traffic: alpha below 1.357 / p against 2 / p (15).", pays
        ),
    ),
    draw=draw,
    minutes=0.1,
    chosen=("(15) for p up to 0.13, beyond which p' of (14) exceeds 1.",),
)
