"""Positions of the clients: which claims a hub believes."""

import pytest

from mainstem.engines.federate.hub import positions
from mainstem.engines.federate.hub.positions import YEAR, Positions, now
from mainstem.engines.federate.protocol.heartbeats import Position

HUB = Position(10, 6, 8)


def claimed(*given, quorum=2):
    found = Positions(lambda: quorum, lambda step: step + 4)
    for k, each in enumerate(given):
        found.note(str(k), Position(*each))
    return found


@pytest.mark.parametrize(
    "given",
    [(), ((10, 6, 8), (10, 5, 4)), ((9, 90, 8),), ((10, 6, 12), (10, 6, 8)), ((10, 6, 99),)],
    ids=str,
)
def test_a_hub_that_was_not_set_back(given):
    """The last two: no more than one sync ahead of the others, and not on the word of one client."""
    hub = HUB._replace(step=12) if len(given) == 2 else HUB
    assert claimed(*given).ahead(hub) is None


def test_a_later_version_or_epoch_shows_that_it_was():
    assert claimed((10, 7, 8)).ahead(HUB) == Position(10, 7, 8)
    assert claimed((11, 2, 8), (10, 9, 8)).ahead(HUB) == Position(11, 2, 8)


def test_in_lockstep_the_latest_step_counts_that_is_near_those_of_others():
    assert claimed((10, 9, 20), (10, 9, 24), (10, 9, 1000)).ahead(HUB).step == 24
    assert claimed((10, 9, 20), (10, 9, 20), (10, 9, 24)).ahead(HUB).step == 24
    assert claimed((10, 9, 1000)).ahead(HUB).step == 8
    assert claimed((10, 9, 1000), quorum=1).ahead(HUB).step == 1000


def test_at_the_free_pace_no_step_counts():
    assert claimed((10, 6, 9), (10, 6, 9)).ahead(HUB._replace(step=0)) is None


def test_a_client_is_believed_once_a_minute(monkeypatch):
    found = claimed((10, 7, 0))
    assert found.ahead(HUB) is not None
    found.note("0", Position(10, 8, 0))
    assert found.ahead(HUB) is None
    found.note("1", Position(10, 8, 0))
    assert found.ahead(HUB) is not None
    monkeypatch.setattr(positions, "AGAIN", 0.0)
    assert found.ahead(HUB) is not None


def test_a_time_in_the_far_future_is_not_believed(caplog):
    assert claimed((now() + 2 * YEAR, 1, 0)).ahead(HUB) is None
    assert "far future" in caplog.text
