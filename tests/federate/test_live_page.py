"""The live page of a federated run in Chromium: what an operator sees and does."""

import asyncio
import json
import signal
import time

import nats
import numpy as np
import pytest

import mainstem as ms
from mainstem.engines.federate.control import Observer, statuses
from tests.dashboard.pages import page_of
from tests.dashboard.statuses import CLIENT, MERGE, STATUS
from tests.federate.clusters import ports
from tests.federate.processes import Federation, asked
from tests.report.browser import Browser

pytestmark = pytest.mark.browser

WIDTHS = pytest.mark.parametrize("width", [1280, 390])
PATIENCE = 60.0  # seconds
CONTENT = {
    "problem": {"name": "linear", "features": 20, "intercept": False},
    "algorithm": {"name": "fedogd", "step": 0.1},
    "federate": {"run": "scale", "clients": 3, "deadline": 0.5},
    "stream": {},
}
CHART = "const {drawn, chart} = live.charts.get(arguments[0]);"
HOSTILE = "<img src=x onerror=document.title='taken'>\u202e\x07\x1b[31m"


class Watched(Federation):
    """A federation with a live page."""

    def start_all(self, port):
        self.port = port
        self.first = self.hub("--dashboard", f"127.0.0.1:{port}")
        self.crowd = self.start(
            *("tests.federate.many_clients", self.url, "scale", "0", "3", "1000000", "0.05", "0.1"),
            log="crowd.log",
        )
        return self

    @property
    def page(self):
        token = (self.folder / "hub" / "dashboard.token").read_text()
        return f"http://127.0.0.1:{self.port}/?token={token}"

    def status(self):
        (found,) = asyncio.run(statuses(self.url, self.credentials, "scale"))
        return found


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    made = Watched(tmp_path_factory.mktemp("live"), CONTENT)
    (port,) = ports(1)
    yield made.start_all(port)
    made.stop()


def until(found, patience=PATIENCE):
    end = time.monotonic() + patience
    while not (value := found()):
        assert time.monotonic() < end, "it was not seen in time"
        time.sleep(0.1)
    return value


def opened(browser: Browser, watched, width=1280, dark=False):
    """The page, with its run and its first curves."""
    until(
        lambda: asked(f"http://127.0.0.1:{watched.port}/")[0] == 401
    )  # there, and wants its token
    browser.open(watched.page, width, dark)
    until(lambda: browser.run("return (live.charts.get('loss')?.drawn.lines.length ?? 0) > 0"))


def text_of(browser, place):
    return browser.run("return document.querySelector(arguments[0]).textContent", place)


@WIDTHS
def test_it_loads_without_an_error_and_asks_nobody_else(browser, watched, width):
    opened(browser, watched, width)
    assert browser.messages() == []
    assert {url.split("/")[2] for url in browser.requests() if not url.startswith("data:")} == {
        f"127.0.0.1:{watched.port}"
    }
    assert browser.run("return document.documentElement.scrollWidth") <= width
    count = browser.run("return document.querySelectorAll('canvas').length")
    assert count >= 5
    assert all(browser.inked(n) > 500 for n in range(count))


def test_it_has_no_serious_fault_of_accessibility_in_light_and_dark(browser, watched):
    opened(browser, watched)
    assert browser.faults() == []
    opened(browser, watched, dark=True)
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    assert browser.faults() == []
    browser.run("document.getElementById('theme').click()")
    assert browser.run("return document.documentElement.dataset.theme") == "light"


def test_its_numbers_are_those_that_the_hub_has_counted(browser, watched):
    opened(browser, watched)
    until(lambda: browser.run(CHART + "return drawn.x.values.length", "bytes") > 5)
    xs, ups = browser.run(
        CHART + "const line = drawn.lines.find((each) => each.name.startsWith('up'));"
        "return [drawn.x.values, line.y];",
        "bytes",
    )
    see(browser, "bytes")
    until(lambda: len(browser.run(CHART + "return chart.plot.data[0]", "bytes")) > len(xs))

    async def stored():
        async with await Observer.open(watched.url, watched.credentials, "scale") as observer:
            return (await observer.timeline("scale")).moments(time.time())

    known = {each["time"]: sum(each["bytes_up"]) / 1e6 for each in asyncio.run(stored())}
    both = [(up, known[x]) for x, up in zip(xs, ups, strict=True) if x in known]
    assert len(both) > 3
    np.testing.assert_allclose(*zip(*both, strict=True), rtol=1e-12)
    assert both[-1][0] > 0
    until(lambda: browser.run(CHART + "return drawn.x.values.length", "bytes") > len(xs) + 2)


def test_together_and_alone_are_shown(browser, watched):
    opened(browser, watched)
    lines = CHART + "return drawn.lines.map((each) => [each.name, each.y.at(-1)])"
    until(lambda: browser.run(lines, "alone"))
    shown = dict(browser.run(lines, "alone"))
    assert watched.status()["alone"]["clients"] == 3
    assert set(shown) == {"together", "alone"}
    assert all(0 < value < 1 for value in shown.values())
    head = browser.run(
        "return [...document.querySelectorAll('#sites th')].map((e) => e.textContent)"
    )
    gain = head.index("Gain over alone")
    rows = "return [...document.querySelectorAll('#sites tbody tr')]"
    cells = rows + ".map((each) => each.cells[arguments[0]].textContent)"
    until(lambda: all(map(float, browser.run(cells, gain))))


def see(browser, chart):
    """Scrolls to a chart: those on the screen are drawn."""
    browser.run("live.charts.get(arguments[0]).place.scrollIntoView()", chart)


def test_a_legend_hides_and_a_zoom_stays_while_points_come(browser, watched):
    opened(browser, watched)
    browser.run("document.querySelector('.legend button').click()")
    see(browser, "norm")
    first, last = browser.run(
        CHART + "const xs = drawn.x.values; chart.zoomTo(xs[0], xs[1]);"
        "live.charts.get('norm').chart.toggle(0); return [xs[0], xs[1]];",
        "norm",
    )
    count = browser.run(CHART + "return drawn.x.values.length", "norm")
    until(lambda: browser.run(CHART + "return drawn.x.values.length", "norm") > count + 1)
    assert browser.run(
        CHART + "const {min, max} = chart.plot.scales.x; return [min, max]", "norm"
    ) == [first, last]
    assert browser.run(CHART + "return chart.plot.series[1].show", "norm") is False
    browser.run(CHART + "chart.reset()", "norm")
    until(lambda: browser.run(CHART + "return chart.plot.scales.x.max", "norm") > last)


def test_an_order_is_asked_for_twice(browser, watched):
    opened(browser, watched)
    button = "document.querySelector('[data-order=\"{}\"]')"
    until(lambda: browser.run(f"return {button.format('pause')} !== null"))
    browser.run(f"{button.format('pause')}.click()")
    assert "Pause: run scale?" in text_of(browser, "dialog")
    assert browser.run("return document.activeElement.textContent") == "Cancel"
    browser.run("document.activeElement.click()")
    time.sleep(1.0)
    assert watched.status()["state"] == "running"
    browser.run(f"{button.format('pause')}.click(); document.querySelector('.yes').click()")
    until(lambda: text_of(browser, "#answer") == "pause: done")
    assert watched.status()["state"] == "paused"
    until(lambda: browser.run(f"return {button.format('resume')} !== null"))
    assert browser.run(f"return {button.format('pause')} === null")
    browser.run(f"{button.format('resume')}.click(); document.querySelector('.yes').click()")
    until(lambda: text_of(browser, "#answer") == "resume: done")
    assert watched.status()["state"] == "running"
    assert browser.faults() == []


def test_it_goes_on_over_a_kill_of_the_hub_and_history_survives_a_reload(browser, watched):
    opened(browser, watched)
    browser.run("window.marker = true")
    first = browser.run(CHART + "return drawn.x.values[0]", "merges")
    watched.first.send_signal(signal.SIGKILL)
    watched.first.wait()
    until(lambda: "no connection" in text_of(browser, "#connection"))
    again = time.time()
    watched.hub("--dashboard", f"127.0.0.1:{watched.port}")
    until(lambda: text_of(browser, "#connection") == "live")
    until(lambda: browser.run(CHART + "return drawn.x.values.at(-1)", "merges") > again + 1)
    assert browser.run("return window.marker") is True  # the same page
    assert browser.run(CHART + "return drawn.x.values[0]", "merges") == first
    opened(browser, watched)  # the server of the page was another process before
    assert browser.run(CHART + "return drawn.x.values[0]", "merges") == first


def test_hostile_names_are_text(browser, nats_server, tmp_path):
    """On a server without credentials anybody may write a status."""
    long = HOSTILE + "x" * 10_000
    client = CLIENT | {"refused": {HOSTILE: 2}}
    status = STATUS | {
        "run": "evil",
        "state": long,
        "time": time.time(),
        "pace": HOSTILE,
        "clients": {HOSTILE: client, long: client},
        "alarms": [{"alarm": HOSTILE, "client": HOSTILE, "text": long}],
        "checkpoints": [],
        "merges": [MERGE | {"stopped": [long]}],
    }

    async def write():
        connection = await nats.connect(nats_server.url)
        js = connection.jetstream()
        for run in ("evil", "worse"):  # the second has the status of another run
            subject = f"ms.{run}.status"
            await js.add_stream(name=f"ms-{run}-down", subjects=[subject], allow_direct=True)
            await js.publish(subject, json.dumps(status).encode())
        await connection.close()

    asyncio.run(write())
    with page_of(nats_server.url, tmp_path / "token") as page:
        browser.open(f"{page}#run=evil")
        until(
            lambda: browser.run("return document.querySelectorAll('#sites tbody tr').length") == 2
        )
        names = browser.run(
            "return [...document.querySelectorAll('#runs a')].map((each) => each.textContent)"
        )
        assert "evil" in names
        assert "worse" not in names
        shown = browser.run("return document.body.textContent")
        assert shown.count(HOSTILE) > 5
        assert long in shown
        time.sleep(1.0)
        assert browser.run("return document.images.length") == 0
        assert browser.run("return document.title") != "taken"
        assert browser.messages() == []
        assert browser.run("return document.documentElement.scrollWidth") <= 1280
        assert browser.faults() == []


def test_hostile_folders_are_text(browser, tmp_path):
    place = tmp_path / "runs" / "<img src=x onerror=document.title='taken'>"
    draw = np.random.default_rng(0).normal(size=(50, 2))
    stream = ms.streams.arrays(draw, (draw[:, 0] > 0).astype(int), clients=2)
    run = ms.simulate(
        ms.fedogd(0.1), ms.problems.logistic(features=2), stream, steps=20, folder=place
    )
    with page_of(str(tmp_path / "runs"), tmp_path / "token") as page:
        browser.open(page)
        until(lambda: browser.run("return live.charts.size") == 2)
        assert text_of(browser, "#runs a") == text_of(browser, "#run h2") == place.name
        assert browser.run(CHART + "return drawn.lines[0].y", "loss") == pytest.approx(
            run.loss.tolist()
        )
        assert browser.run("return document.images.length") == 0
        assert browser.messages() == []
