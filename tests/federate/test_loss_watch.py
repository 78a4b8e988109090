"""A run whose losses grow far beyond those of the beginning is held, or goes back to its last good model."""

import asyncio
import logging

import numpy as np
import pytest

from mainstem.engines.federate import control
from mainstem.engines.federate.hub.aggregator import Aggregator
from mainstem.engines.federate.hub.loss_watch import WINDOW, LossWatch
from mainstem.engines.federate.protocol.messages import Upload, client_id, pack_upload
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.protocol.state_format import unpack
from mainstem.errors import MainstemError
from tests.federate.in_process import run_content, serving, until

LINEAR = {"name": "linear", "features": 2, "intercept": False}
FEDOGD = {"name": "fedogd", "step": 0.1}


def watched(losses):
    """A watch on clients with these losses at the beginning and then."""
    watch = LossWatch(len(losses))
    for k, (early, recent) in enumerate(losses):
        for _ in range(WINDOW):
            watch.add(k, 2 * early, samples=2)
        for _ in range(20 * WINDOW):
            watch.add(k, 2 * recent, samples=2)
    return watch


def test_the_median_over_the_clients_counts():
    assert watched([(1, 3), (2, 4), (5, 5000)]).level == pytest.approx(3)
    assert watched([(1, 30), (2, 60), (5, 0)]).level == pytest.approx(30)


def test_little_is_known_of_few_clients_or_uploads():
    assert LossWatch(3).level == 0
    few = LossWatch(3)
    for _ in range(WINDOW):
        few.add(0, 1.0, 1)
    assert few.level == 0
    assert watched([(0, 5), (0, 5), (1, 5)]).level == 0  # the first two began without a loss


def test_it_is_stored_and_restored():
    document = parse(run_content(FEDOGD, LINEAR))
    first, second = Aggregator(document), Aggregator(document)
    first.records.watch.add(1, 3.0, 2)
    second.restore(unpack(first.snapshot(1), "state"), document)
    for name, array in first.records.watch.arrays().items():
        assert np.array_equal(array, second.records.watch.arrays()[name])


@pytest.mark.parametrize("alarm", [-1, 0.5, float("nan"), "much"])
def test_bad_rules_are_refused(alarm):
    with pytest.raises(MainstemError, match="federate: alarm must"):
        parse(run_content(FEDOGD, LINEAR, alarm=alarm))
    with pytest.raises(MainstemError, match="federate: on_alarm must"):
        parse(run_content(FEDOGD, LINEAR, on_alarm="run away"))


class Reporter:
    """Sends uploads of both clients with a given loss at each step."""

    def __init__(self, hub):
        self.hub = hub
        self.step, self.total = 0, 0.0

    async def rounds(self, count, loss, merged=True):
        document, aggregator = self.hub.document, self.hub.aggregator
        for _ in range(count):
            self.step += 1
            self.total += loss
            version = aggregator.version
            for k in range(2):
                body = np.full(document.message, loss, document.dtype).tobytes()
                ours = (
                    document.digest,
                    document.codec,
                    client_id(document.clients[k]),
                    self.step,
                    version,
                    self.total,
                    1.0,
                )
                data = pack_upload(Upload(*ours, body, aggregator.epoch))
                await self.hub._connection.publish(self.hub.subjects.upload(str(k)), data)
            if merged:
                await until(lambda: aggregator.version > version or self.hub._alarm.holds)  # noqa: B023


def run(url, script, **rules):
    async def lived():
        content = run_content(FEDOGD, LINEAR, guard=False, deadline=10**6, **rules)
        async with serving(url, content) as (hub, _):
            reporter = Reporter(hub)
            await reporter.rounds(WINDOW, 1.0)
            await script(hub, reporter)

    asyncio.run(lived())


def test_a_run_is_held_and_goes_back_by_order(nats_server, caplog):
    async def script(hub, reporter):
        good = hub.aggregator.model.copy()
        while not hub._alarm.holds:
            await reporter.rounds(1, 100.0)
        assert hub.status()["state"] == "held"
        await until(lambda: [each["alarm"] for each in hub.status()["alarms"]] == ["held"])
        held = hub.aggregator.version
        await reporter.rounds(1, 100.0)
        await until(lambda: len(hub.aggregator.waiting) == 2)
        assert "it holds: the order `resume` goes on; `back` goes to" in caplog.text
        assert f"the model of merge {WINDOW}" in caplog.text
        assert not np.allclose(hub.aggregator.model, good)
        found = await control.send_order(nats_server.url, hub.document.rules.run, "back")
        assert found["state"] == "running"
        assert found["version"] == held + 1  # so that clients take it
        assert np.allclose(hub.aggregator.model, good)
        assert (
            hub.aggregator.records.received.tolist() == [reporter.step] * 2
        )  # nobody sends them again
        await reporter.rounds(2, 1.0)
        assert hub.aggregator.version == held + 3

    with caplog.at_level(logging.WARNING, "mainstem"):
        run(nats_server.url, script)


def test_a_run_goes_back_by_itself_three_times(nats_server, caplog):
    async def script(hub, reporter):
        good = hub.aggregator.model.copy()
        while hub._alarm.returns == 0:
            await reporter.rounds(1, 100.0)
        assert np.allclose(hub.aggregator.model, good)
        while not hub._alarm.holds:
            await reporter.rounds(1, 100.0)
        assert hub._alarm.returns == 3

    with caplog.at_level(logging.WARNING, "mainstem"):
        run(nats_server.url, script, on_alarm="return")
    assert caplog.text.count(f"it goes back to the model of merge {WINDOW}") == 3


def test_without_an_alarm_it_goes_on(nats_server):
    async def script(hub, reporter):
        await reporter.rounds(2 * WINDOW, 100.0)
        assert hub.status()["state"] == "running"
        with pytest.raises(MainstemError, match="there is no order"):
            await control.send_order(nats_server.url, hub.document.rules.run, "forward")

    run(nats_server.url, script, alarm=0)
