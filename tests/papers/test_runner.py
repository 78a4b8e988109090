"""Which code a run depends on."""

import mainstem as ms
from mainstem import parts
from mainstem.papers import runner
from mainstem.papers.results.fedsea_rates import steep
from mainstem.spec import recorded


@recorded
def own_stream(inner):
    return ms.streams.sometimes(inner, 0.5)


def modules(*made):
    return runner.needed({module for value in made for module in runner.makers(value)})


def test_a_run_needs_what_made_it_and_what_that_imports():
    found = modules(ms.fedsea(0.1), ms.problems.mlp(3), ms.streams.digits(3))
    assert {"mainstem.algorithms.fedsea", "mainstem.algorithms.fedomd"} <= found
    assert {"mainstem.parts.mirror", "mainstem.problems.supervised"} <= found
    assert "mainstem.streams.deal" in found
    for other in ("algorithms.ofediq", "parts.quantiser", "problems.cnn", "streams.tasks"):
        assert f"mainstem.{other}" not in found


def test_parts_of_parts_count():
    assert "mainstem.parts.quantiser" in modules(ms.fedomd(0.1, codec=parts.quantiser(3)))
    assert "mainstem.streams.tasks" not in modules(ms.streams.sometimes(ms.streams.digits(3), 0.5))


def test_factories_from_elsewhere_count_by_their_own_module():
    found = modules(own_stream(steep(3)))
    assert {__name__, "mainstem.papers.results.fedsea_rates"} <= found
    assert "mainstem.papers.sahu" not in found


def test_the_code_of_one_algorithm_does_not_depend_on_another(monkeypatch):
    before = {make: runner.code(make(0.1)) for make in (ms.fedogd, ms.ofediq, ms.fedsea)}
    real = runner.source

    def changed(module):
        return real(module) + ("# changed" if module == "mainstem.algorithms.ofediq" else "")

    monkeypatch.setattr(runner, "source", changed)
    after = {make: runner.code(make(0.1)) for make in before}
    assert [after[make] == before[make] for make in before] == [False, False, True]
