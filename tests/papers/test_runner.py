"""Which code a run depends on."""

import mainstem as ms
from mainstem.papers.results.fedsea_rates import steep
from mainstem.papers.runner import elsewhere
from mainstem.spec import recorded


@recorded
def own_stream(inner):
    return ms.streams.sometimes(inner, 0.5)


def test_the_source_of_a_part_from_outside_counts():
    assert [*elsewhere(ms.streams.digits(3))] == []
    assert ["def steep" in text for text in elsewhere(steep(3))] == [True]
    assert ["def own_stream" in text for text in elsewhere(own_stream(ms.streams.digits(3)))] == [
        True
    ]
    found = [*elsewhere(ms.streams.sometimes(steep(3), 0.5))]
    assert ["def steep" in text for text in found] == [True]
