"""The report in Chromium: what a reader sees and does."""

from pathlib import Path

import numpy as np
import pytest

import mainstem as ms
from mainstem.errors import Diverged, OnEdge
from tests.report.browser import Browser
from tests.report.conftest import HOSTILE

pytestmark = pytest.mark.browser

WIDTHS = pytest.mark.parametrize("width", [1280, 390])
STATE = "const chart = report.charts[arguments[0]];"


@WIDTHS
def test_it_loads_without_an_error_and_without_a_request(
    browser: Browser, report: Path, width: int
) -> None:
    browser.open(report, width)
    assert browser.messages() == []
    asked = browser.requests()
    assert asked[0] == report.as_uri()
    assert {url.split(":")[0] for url in asked[1:]} <= {"data"}
    assert browser.run("return document.documentElement.scrollWidth") <= width


@WIDTHS
def test_every_chart_is_drawn(browser: Browser, report: Path, width: int) -> None:
    browser.open(report, width)
    count = browser.run("return report.charts.length")
    assert count == browser.run("return document.querySelectorAll('canvas').length") >= 6
    assert min(browser.inked(n) for n in range(count)) > 1000


def test_the_curves_are_those_of_the_runs(
    browser: Browser, report: Path, runs: dict[str, ms.Run]
) -> None:
    browser.open(report)
    for n, run in enumerate(runs.values()):
        shown = browser.run(
            "const line = report.charts[0].drawn.lines[arguments[0]];"
            "return ['x', 'y', 'low', 'high'].map((name) => [...line[name]]);",
            n,
        )
        mean, error = run.accuracy.mean(axis=0), run.accuracy.std(axis=0, ddof=1) * np.sqrt(2)
        expected = [run.t, mean, mean - error, mean + error]
        np.testing.assert_allclose(shown, expected, rtol=1e-6, atol=1e-6)
        drawn = browser.run("return report.charts[0].plot.data[1 + 3 * arguments[0]]", n)
        np.testing.assert_allclose(drawn, mean, rtol=1e-6)


def test_the_theorems_bound_is_beside_the_regret(
    browser: Browser, report: Path, runs: dict[str, ms.Run]
) -> None:
    browser.open(report)
    text = browser.run("return document.querySelector('#regret').innerText")
    for run in list(runs.values())[:2]:
        assert str(run.regret("curve")) in text
    assert "bound" in text


def test_a_legend_hides_its_curve(browser: Browser, report: Path) -> None:
    browser.open(report)
    before = browser.inked(0)
    button = "document.querySelector('.legend button')"
    browser.run(f"{button}.click()")
    assert browser.run(f"return {button}.getAttribute('aria-pressed')") == "false"
    assert browser.run("return report.charts[0].plot.series.map((each) => each.show)")[1:4] == [
        False,
        False,
        False,
    ]
    assert browser.inked(0) < before
    browser.run(f"{button}.click()")
    assert browser.inked(0) == before


def test_a_hidden_curve_stays_hidden_when_a_line_is_added(browser: Browser, report: Path) -> None:
    browser.open(report)
    shown = browser.run(
        STATE + "chart.toggle(1); const [first, second] = chart.drawn.lines;"
        "chart.set([{...first, name: 'new'}, first, second]);"
        "return [0, 1, 2].map((n) => [chart.drawn.lines[n].name, chart.plot.series[3 * n + 1].show,"
        " chart.buttons[n].getAttribute('aria-pressed')]);",
        0,
    )
    assert shown == [["new", True, "true"], ["FedOGD", True, "true"], ["OFedAvg", False, "false"]]


def test_a_double_click_shows_all_and_follows_what_comes(browser: Browser, report: Path) -> None:
    browser.open(report)
    longer = (
        "const add = (values, value) => Float64Array.from([...values, value]);"
        "chart.set(chart.drawn.lines.map((line) =>"
        " ({name: line.name, colour: line.colour, x: add(line.x, 90), y: add(line.y, 0.5)})));"
        "return new Promise((done) => requestAnimationFrame(() => done(chart.plot.scales.x.max)));"
    )
    browser.run(STATE + "chart.zoomTo(10, 20);", 0)
    browser.run(
        STATE + "const {over} = chart.plot;"
        "over.dispatchEvent(new MouseEvent('dblclick', {bubbles: true, button: 0}));",
        0,
    )
    assert browser.run(STATE + "return chart.range", 0) is None
    assert browser.run(STATE + longer, 0) == 90


def test_zoom_reveals_what_the_whole_curve_hides(browser: Browser, tmp_path: Path) -> None:
    problem, stream = (
        ms.problems.logistic(features=1),
        ms.streams.arrays(np.ones((40_000, 1)), np.ones(40_000, int), clients=2),
    )
    run = ms.simulate(ms.fedogd(0.001), problem, stream, steps=200_000)
    trace = {name: np.array(run.trace[name]) for name in run.trace}
    trace["loss"][0, 123_456], trace["loss"][0, 123_500] = 50, -50
    run.trace = trace
    browser.open(run.report(tmp_path / "long.html", regret=False))
    chart = browser.run(
        "return report.charts.findIndex((each) => each.drawn.title.includes('loss at the step'))"
    )
    assert browser.run(STATE + "return chart.drawn.lines[0].y.length", chart) <= 20_000
    browser.run(STATE + "chart.zoomTo(123400, 123600)", chart)
    seen = browser.run(
        STATE + "const {min, max} = chart.plot.scales.x; const [xs, ys] = chart.plot.data;"
        "const inside = [...xs.keys()].filter((n) => xs[n] >= min && xs[n] <= max);"
        "return [min, max, inside.map((n) => [xs[n], ys[n]])];",
        chart,
    )
    assert seen[:2] == [123_400, 123_600]
    assert [123_457, 50] in seen[2]
    assert [123_501, -50] in seen[2]
    browser.run(
        "document.querySelectorAll('.chart')[arguments[0]].querySelector('[title=\"Show all\"]').click()",
        chart,
    )
    assert browser.run(STATE + "return chart.plot.scales.x.max", chart) == 200_000


def test_everything_can_be_done_with_the_keyboard(browser: Browser, report: Path) -> None:
    browser.open(report)
    from selenium.webdriver import ActionChains, Keys

    def press(*keys: str) -> None:
        ActionChains(browser.driver).send_keys(*keys).perform()

    seen = []
    for _ in range(60):
        press(Keys.TAB)
        name = "const it = document.activeElement; return it.getAttribute('aria-label') || it.textContent;"
        seen.append(browser.run(name).strip())
    order = [
        seen.index(each) for each in ("Dark colours", "Overview", "algorithm", "Zoom in", "log x")
    ]
    assert order == sorted(order)
    browser.run("document.querySelector('.tools button').focus()")
    before = browser.run(
        "return report.charts[0].plot.scales.x.max - report.charts[0].plot.scales.x.min"
    )
    press(Keys.ENTER)
    after = browser.run(
        "return report.charts[0].plot.scales.x.max - report.charts[0].plot.scales.x.min"
    )
    assert after == pytest.approx(before / 2)


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show(browser: Browser, report: Path) -> None:
    browser.open(report)
    count = browser.run("return report.charts.length")
    browser.run(
        "for (const button of document.querySelectorAll('.tools button'))"
        " if (button.textContent.startsWith('log')) button.click();"
    )
    assert min(browser.inked(n) for n in range(count)) > 500
    assert browser.messages() == []


@pytest.mark.parametrize("dark", [False, True])
@WIDTHS
def test_it_is_accessible(browser: Browser, report: Path, width: int, dark: bool) -> None:
    browser.open(report, width, dark)
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")
    browser.run("for (const details of document.querySelectorAll('details')) details.open = true")
    assert browser.faults() == []


def test_the_command_is_seen_first(browser: Browser, report: Path) -> None:
    browser.open(report)
    shown = browser.run("return document.querySelector('#overview dl').innerText")
    assert shown.split() == ["Command", "mainstem", "run", "three.toml"]


def test_the_theme_changes(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.run("document.querySelector('#theme').click()")
    assert (
        browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    )
    assert browser.inked(0) > 1000


def test_tables_sort(browser: Browser, report: Path) -> None:
    browser.open(report)
    column = (
        "return [...document.querySelectorAll('#overview tbody tr')]"
        ".map((row) => Number.parseFloat(row.cells[1].textContent))"
    )
    for times in (1, 2):
        browser.run("document.querySelectorAll('#overview thead button')[1].click()")
        found = browser.run(column)
        assert found == sorted(found, reverse=times == 2)


def test_a_hostile_name_is_text(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.run("return document.title") != "taken"
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert HOSTILE in browser.run("return document.querySelector('#overview').innerText")


def test_a_sweep_over_names_shows_them_side_by_side(
    browser: Browser, tmp_path: Path, runs: dict[str, ms.Run]
) -> None:
    first = next(iter(runs.values()))
    assert first.problem is not None
    assert first.stream is not None
    problem = first.problem
    chosen = {"all": ms.parts.everyone(), "one": ms.parts.exactly(1), "two": ms.parts.exactly(2)}
    found = ms.sweep(
        lambda who: (ms.fedomd(0.1, participation=chosen[who]), problem),
        {"who": [*chosen]},
        first.stream,
        steps=20,
        seeds=2,
    )
    browser.open(found.report(tmp_path / "sweep.html", regret=False))
    assert browser.run("return document.querySelector('#grid figcaption').innerText") == (
        "Accuracy(t) at the end"
    )
    shown, places, ticks = browser.run(
        STATE
        + "const axis = chart.plot.axes[0]; return [chart.drawn.lines.map((line) => line.y[0]),"
        " axis._splits, axis._values];",
        0,
    )
    np.testing.assert_allclose(shown, np.mean(found.finals, axis=1), rtol=1e-6)
    assert dict(zip(ticks, places, strict=True)) == {"all": 0, "one": 1, "two": 2}
    assert browser.inked(0) > 1000
    browser.run("document.querySelector('#grid details').open = true")
    rows = "return [...document.querySelectorAll('#grid tbody tr')].map((row) => row.cells[0].innerText)"
    assert browser.run(rows) == [*chosen]
    assert browser.messages() == []


def test_a_grid_says_where_the_other_parameters_are(browser: Browser, tmp_path: Path) -> None:
    stream, problem = ms.streams.digits(clients=4), ms.problems.softmax(64, 10)
    with pytest.warns(OnEdge):
        found = ms.sweep(
            lambda step, period, rate: (
                ms.fedomd(
                    step, sync=ms.parts.every(period), participation=ms.parts.bernoulli(rate)
                ),
                problem,
            ),
            {"step": [0.1, 0.5], "period": [1, 2], "rate": [0.5, 0.9]},
            stream,
            steps=10,
        )
    browser.open(found.report(tmp_path / "three.html", regret=False))
    caption = browser.run("return document.querySelector('.grid caption').innerText")
    rate = found.best["rate"]
    assert (
        caption == f"accuracy(t) at the end, at rate = {rate} of the best point; the best is framed"
    )


def test_nothing_is_the_best_where_all_diverged(browser: Browser, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    stream = ms.streams.arrays(draw.normal(size=(40, 2)), draw.normal(size=40), clients=2)
    problem = ms.problems.linear(2)
    with pytest.warns(Diverged), pytest.warns(OnEdge):
        found = ms.sweep(
            lambda step, period: (ms.fedomd(step, sync=ms.parts.every(period)), problem),
            {"step": [1e30, 2e30], "period": [1, 2]},
            stream,
            steps=20,
        )
    browser.open(found.report(tmp_path / "diverged.html", regret=False))
    cells = "return [...document.querySelectorAll('.grid td')].map((cell) => cell.innerText)"
    assert browser.run(cells) == ["diverged"] * 4
    assert browser.run("return document.querySelector('.best')") is None
    caption = browser.run("return document.querySelector('.grid caption').innerText")
    assert caption == "MSE(t) at the end; all diverged"
    assert browser.messages() == []


def test_a_sweep_shows_its_grid(browser: Browser, tmp_path: Path, runs: dict[str, ms.Run]) -> None:
    first = next(iter(runs.values()))
    assert first.problem is not None
    assert first.stream is not None
    problem = first.problem
    with pytest.warns(OnEdge):  # two periods: both are at the edge
        found = ms.sweep(
            lambda step, period: (ms.fedomd(step, sync=ms.parts.every(period)), problem),
            {"step": [0.01, 0.1, 1.0], "period": [1, 2]},
            first.stream,
            steps=20,
        )
    browser.open(found.report(tmp_path / "sweep.html", regret=False))
    cells = browser.run(
        "return [...document.querySelectorAll('.grid tbody tr')]"
        ".map((row) => [...row.querySelectorAll('td')].map((cell) => Number(cell.textContent)))"
    )
    np.testing.assert_allclose(cells, found.grid()[2], rtol=1e-3)
    best = browser.run("return document.querySelector('.best').textContent")
    assert float(best) == pytest.approx(found.best[found.y], rel=1e-3)
    assert browser.messages() == []
