"""The timeline of a run: bounded room, the last minutes by the second, the last months by the day."""

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.engines.federate.control import Observer
from mainstem.engines.federate.protocol.timeline import (
    SLOTS,
    WIDTHS,
    Timeline,
    moment,
    pack,
    places,
    unpack,
)
from tests.federate.in_process import joined, run_content, serving, until


def kept(times):
    timeline = Timeline()
    for time in times:
        timeline.add({"time": time})
    return [each["time"] for each in timeline.moments(times[-1])]


def test_the_last_minutes_are_there_by_the_second():
    times = [1e9 + n for n in range(10_000)]
    found = kept(times)
    assert found[-SLOTS:] == times[-SLOTS:]
    assert len(found) <= SLOTS * len(WIDTHS)


def test_older_moments_are_further_apart():
    found = kept([1e9 + n for n in range(400_000)])
    assert found == sorted(found)
    assert found[0] <= 1e9 + WIDTHS[3]  # from the beginning on
    apart = [later - earlier for earlier, later in itertools.pairwise(found)]
    assert max(apart) <= WIDTHS[3]
    for width in WIDTHS[:3]:
        since = [
            gap
            for gap, time in zip(apart, found, strict=False)
            if found[-1] - time < (SLOTS - 1) * width
        ]
        assert max(since) <= width


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=300))
def test_a_reader_of_the_places_has_what_the_writer_kept(gaps):
    written, stored, before, now = Timeline(), {}, float("-inf"), 1e9
    for gap in gaps:
        now += gap
        written.add({"time": now})
        stored |= {place: {"time": now} for place in places(now, before)}
        before = now
    read = Timeline()
    for place, each in stored.items():
        read.put(place, each)
    assert read.moments(now) == written.moments(now)
    assert read.moments(now)[-1]["time"] > now - 1.0 or len(gaps) == 1


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"null", b'{"time": "x"}', b'{"time": 1, "clients": ["a"]}']
)
def test_what_is_no_moment_is_refused(data):
    with pytest.raises(ValueError, match=r"no moment|Expecting|convert"):
        unpack(data)


def test_a_hub_keeps_its_timeline_on_the_server(nats_server):
    content = run_content({"name": "fedogd", "step": 0.1}, quorum=1)

    async def lived():
        async with serving(nats_server.url, content) as (hub, _):
            name = hub.document.rules.run
            async with await Observer.open(nats_server.url, run=name) as observer:
                client = await joined(nats_server.url, hub, "0")
                await until(lambda: hub.status()["clients"]["0"]["state"] == "present")
                await asyncio.sleep(1.2)
                found = await observer.timeline(name)
                await client.close()
                (status,) = await observer.statuses()
                moments = found.moments(status["time"])
        return moments, status

    moments, status = asyncio.run(lived())
    assert moments
    assert moments[-1]["states"] == {"present": 1, "away": 1}
    now = moment(status)
    assert unpack(pack(now)) == now
    assert set(now) == set(moments[-1])
