"""The code that a run depends on."""

import mainstem as ms
from mainstem import parts
from mainstem.base import Stream
from mainstem.papers import runner
from mainstem.papers.results.fedsea_rates import steep
from mainstem.value import integer, part, value


@value
class own_stream(Stream):
    of: Stream = part(Stream, "digits(3)")
    clients: int = integer(default=3, least=1)

    def sample(self, piece, at, drawn):
        return self.of.sample(piece, at, drawn)


def modules(*made):
    return runner.needed({module for value in made for module in runner.makers(value)})


def test_a_run_needs_what_made_it_and_what_that_imports():
    found = modules(ms.fedsea(0.1), ms.problems.mlp(3), ms.streams.digits(3))
    assert {"mainstem.algorithms.send_models", "mainstem.parts.step"} <= found
    assert {"mainstem.parts.mirror", "mainstem.problems.supervised"} <= found
    assert {"mainstem.streams.deal", "mainstem.value.frozen", "mainstem.check"} <= found
    for other in ("send_gradients", "ofediq", "fedomd", "fedres_sgd"):
        assert f"mainstem.algorithms.{other}" not in found
    for other in ("parts.quantiser", "parts.optimizer", "problems.cnn", "streams.tasks"):
        assert f"mainstem.{other}" not in found


def test_what_decides_the_numbers_of_every_run_is_in_the_engine():
    """What else it imports only reports, or belongs to its arguments."""
    paths = [runner.PACKAGE / name for name in runner.ENGINE]
    files = [file for path in paths for file in ({path} | set(path.rglob("*.py")))]
    inside = {
        ".".join(["mainstem", *file.relative_to(runner.PACKAGE).with_suffix("").parts])
        for file in files
        if file.suffix == ".py" and file.stem != "__init__"
    }
    outside = set().union(*(runner.imported(module) for module in inside)) - inside
    others = (
        "advice.",
        "check",
        "errors",
        "parts.codec",  # of broadcasts without one: it counts their bits
        "measure.predicted",  # names of columns
        "parts.network",
        "progress",
        "run.",
        "spec",
        "tracking.",
        "value",
    )
    assert not [name for name in outside if not name.removeprefix("mainstem.").startswith(others)]


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
        return real(module) + ("# changed" if module.endswith("algorithms.send_gradients") else "")

    monkeypatch.setattr(runner, "source", changed)
    after = {make: runner.code(make(0.1)) for make in before}
    assert [after[make] == before[make] for make in before] == [False, False, True]
