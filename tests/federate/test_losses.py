"""The NATS server loses its store or is restored from a backup, the hub its folder: the run goes on, and says so.

Everything runs in one event loop with a real server, which is stopped while its store is changed.
"""

import asyncio
import contextlib
import logging
import shutil

import numpy as np
import pytest

from mainstem.base import Sample
from mainstem.engines.federate.hub.hub import Hub
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.transport import connection as connections
from tests.federate.in_process import joined, run_content, until

LINEAR = {"name": "linear", "features": 3, "intercept": False}
FEDOMD = {"name": "fedomd", "step": 0.1, "sync": {"name": "every", "period": 2}}
CLIENTS = 3


class Site:
    """A client that learns without a pause until it is stopped."""

    def __init__(self, k):
        self.k = k
        self.steps = 0
        self.stopped = False

    async def live(self, url, hub, folder):
        draw = np.random.default_rng(self.k)
        async with await joined(url, hub, str(self.k), folder=folder) as learner:
            while not self.stopped:
                x = draw.normal(size=3).astype(np.float32)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(learner.step_with(Sample(x, np.float32(x.sum()))), 60)
                self.steps = learner.step
                await asyncio.sleep(0.01)


class World:
    """A hub and its clients on a server whose store can be lost."""

    def __init__(self, server, folder, pace):
        self.server, self.folder = server, folder
        self.content = run_content(FEDOMD, LINEAR, clients=CLIENTS, pace=pace)
        if pace == "free":
            self.content["federate"]["deadline"] = 0.2
        self.sites = [Site(k) for k in range(CLIENTS)]

    @property
    def store(self):
        return self.server.folder / "jetstream"

    async def start_hub(self):
        self.connection = await connections.connect(self.server.url)
        self.hub = Hub(parse(self.content), self.connection, folder=self.folder / "hub")
        (self.folder / "hub").mkdir(exist_ok=True)
        await self.hub.open()
        self.serving = asyncio.create_task(self.hub.serve())

    async def stop_hub(self):
        self.hub.stop()
        await self.serving
        await self.connection.close()

    async def __aenter__(self):
        await self.start_hub()
        self.lives = [
            asyncio.create_task(
                site.live(self.server.url, self.hub, self.folder / f"site-{site.k}")
            )
            for site in self.sites
        ]
        return self

    async def __aexit__(self, *error):
        for site in self.sites:
            site.stopped = True
        self.hub._finished = True
        for life in self.lives:
            life.cancel()
        await asyncio.gather(*self.lives, return_exceptions=True)
        await self.stop_hub()

    async def merged(self, more):
        """Waits until this many more merges are made, and uploads of every client are in them."""
        version, merged = self.hub.aggregator.version, self.hub.aggregator.records.merged.copy()
        await until(lambda: self.hub.aggregator.version >= version + more, 40)
        await until(lambda: (self.hub.aggregator.records.merged > merged).all(), 40)

    async def with_server_stopped(self, change):
        await asyncio.to_thread(self.server.stop)
        change()
        await asyncio.to_thread(self.server.start)


def scenario(own_server, tmp_path, pace, restored, hub_ends, folder_lost):
    async def lived():
        async with World(own_server, tmp_path, pace) as world:
            await world.merged(4)
            backup = tmp_path / "backup"
            await world.with_server_stopped(lambda: shutil.copytree(world.store, backup))
            saved = tmp_path / "saved"
            shutil.copytree(tmp_path / "hub", saved)
            await world.merged(6)
            before = world.hub.aggregator.version
            epoch = world.hub.aggregator.epoch
            if hub_ends:
                await world.stop_hub()

            def change():
                shutil.rmtree(world.store)
                if restored:
                    shutil.copytree(backup, world.store)
                if folder_lost:
                    shutil.rmtree(tmp_path / "hub")

            await world.with_server_stopped(change)
            if hub_ends:
                await world.start_hub()
            continued = world.hub.aggregator.version
            await until(lambda: world.hub.aggregator.epoch > epoch, 40)
            await world.merged(4)
            status = world.hub.status()
            assert all(each["state"] == "present" for each in status["clients"].values())
            shown = lambda: [each["alarm"] for each in world.hub.status()["alarms"]]  # noqa: E731
            await until(lambda: shown() == ["store_lost"], 15)  # a client tells it, perhaps
            return before, continued

    return asyncio.run(lived())


SLOW = pytest.mark.slow  # one of the cases is in the gate
PACES = pytest.mark.parametrize("pace", ["free", pytest.param("lockstep", marks=SLOW)])
STORES = pytest.mark.parametrize(
    "restored", [pytest.param(False, marks=SLOW, id="store lost"), pytest.param(True, id="backup")]
)


@PACES
@STORES
@pytest.mark.parametrize(
    "hub_ends",
    [pytest.param(False, id="hub alive"), pytest.param(True, marks=SLOW, id="restarted")],
)
def test_a_hub_with_its_folder_loses_no_merge(
    pace, restored, hub_ends, own_server, tmp_path, caplog
):
    with caplog.at_level(logging.WARNING, "mainstem"):
        before, continued = scenario(own_server, tmp_path, pace, restored, hub_ends, False)
    assert continued >= before
    assert "has lost uploads of this run" in caplog.text


@SLOW
@PACES
@STORES
def test_clients_follow_a_hub_that_has_lost_everything_or_is_set_back(
    pace, restored, own_server, tmp_path, caplog
):
    with caplog.at_level(logging.WARNING, "mainstem"):
        before, continued = scenario(own_server, tmp_path, pace, restored, True, True)
    assert continued < before
    assert "this client had merge" in caplog.text
