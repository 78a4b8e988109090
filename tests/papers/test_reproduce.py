"""Results: run, judged, stored, found again."""

import json

import numpy as np
import pytest

import mainstem as ms
from mainstem.errors import BadData, MainstemError
from mainstem.papers import reproduce as papers
from mainstem.papers import runner as runners
from mainstem.papers.evidence import FAILS, HARDLY, HOLDS, NEARLY, UNDECIDED, rising
from mainstem.papers.result import Claim, Result
from mainstem.report import figures

NAMES = {
    *("fedomd-fig1-left", "fedomd-fig1-right"),
    *("fedsea-rates", "fedsea-parallel", "fedsea-heterogeneity", "fedsea-grid"),
    *("ofediq-planner", "ofediq-fig2", "ofediq-fig3"),
    *(f"ofediq-fig4-{name}" for name in ("mnist", "occupancy", "air", "appliances")),
    *(f"dynfedavg-fig1{letter}" for letter in "abcd"),
    *(f"fedres-fig{number}" for number in range(1, 13)),
    "fedres-bandit",
}


def losses(runner, steps, seeds):
    """The mean losses of a run on a quadratic world."""
    problem, stream = ms.problems.quadratic(dimension=2), ms.streams.sea_quadratic(3, 2, noise=0.01)
    run = runner.run(ms.fedsea(0.3), problem, stream, steps=steps, seeds=seeds, measure=())
    return {"loss": run.loss}


def small(full=HOLDS, why=""):
    return Result(
        name="fedsea-small",
        paper="Nobody 2026, Fig. 0",
        about="A run.",
        full={"steps": 20, "seeds": 4},
        quick={"steps": 10, "seeds": 4},
        measure=losses,
        claims=(
            Claim(
                "It learns.",
                lambda numbers: rising({str(t): numbers["loss"][:, t] for t in (-1, 0)}),
                full=full,
                why=why,
            ),
            Claim(
                "Only in full.",
                lambda numbers: rising({"a": np.zeros(1), "b": np.ones(1)}),
                quick=None,
            ),
        ),
        draw=lambda numbers: figures.curves(numbers, "loss"),
        minutes=0.1,
    )


def test_all_thirty_are_there():
    assert set(papers.catalogue()) == NAMES
    assert len(NAMES) == 30


def test_every_verdict_that_is_not_holds_has_its_reason():
    for result in papers.catalogue().values():
        for claim in result.claims:
            for size in ("full", "quick"):
                recorded = claim.recorded(size)
                known = (None, HOLDS, FAILS, UNDECIDED, NEARLY, HARDLY)
                assert recorded in known, (result.name, claim.says)
                assert recorded in (None, HOLDS) or claim.why, (result.name, claim.says)
        assert any(claim.quick for claim in result.claims), result.name
        assert len({claim.says for claim in result.claims}) == len(result.claims), result.name


def test_a_result_is_run_judged_and_stored(tmp_path):
    outcome = papers.reproduce(small(), "full", folder=tmp_path)
    assert outcome.passed
    assert [each.verdict for each in outcome.claims] == [HOLDS, HOLDS]
    folder = tmp_path / outcome.place
    for name in (
        "figure.png",
        "figure.svg",
        "figure.pdf",
        "numbers.npz",
        "outcome.json",
        "report.html",
    ):
        assert (folder / name).stat().st_size > 0
    assert papers.kept(folder) == outcome
    assert outcome.devices == ["cpu:0 (cpu)"] or "cpu" in outcome.devices[0]


def test_sizes_have_their_own_claims_and_places(tmp_path):
    quick = papers.reproduce(small(), "quick", folder=tmp_path)
    full = papers.reproduce(small(), "full", folder=tmp_path)
    assert len(quick.claims) == 1 < len(full.claims)
    assert quick.place != full.place != papers.reproduce(small(), "full", 7, tmp_path).place


def test_a_change_either_way_is_noticed(tmp_path):
    for recorded in (FAILS, UNDECIDED):
        outcome = papers.reproduce(small(recorded, "a reason"), folder=tmp_path / recorded)
        assert not outcome.passed
        assert outcome.claims[0].why == "a reason"


def test_at_the_edge_some_seeds_may_decide_but_not_the_other_way(tmp_path):
    assert papers.reproduce(small(NEARLY, "a reason"), folder=tmp_path / "a").passed  # it holds
    assert not papers.reproduce(small(HARDLY, "a reason"), folder=tmp_path / "b").passed


def test_what_is_finished_is_not_run_again(tmp_path, monkeypatch):
    first = papers.reproduce(small(), "quick", folder=tmp_path)
    monkeypatch.setattr(runners, "simulate", None)  # to run would fail
    assert papers.reproduce(small(), "quick", folder=tmp_path) == first
    again = papers.reproduce(small(), "quick", folder=tmp_path, fresh=True)  # from the runs
    assert again.claims == first.claims


def test_other_sizes_seeds_and_code_are_run_anew(tmp_path, monkeypatch):
    result = small()
    papers.reproduce(result, "quick", folder=tmp_path)
    count = len([*(tmp_path / "runs").iterdir()])
    papers.reproduce(result, "quick", seed=100, folder=tmp_path)
    assert len([*(tmp_path / "runs").iterdir()]) == 2 * count
    papers.reproduce(result._replace(quick={"steps": 11, "seeds": 4}), "quick", folder=tmp_path)
    assert len([*(tmp_path / "runs").iterdir()]) == 3 * count
    monkeypatch.setattr(runners, "fingerprint", lambda *names: "other code")
    papers.reproduce(result, "quick", folder=tmp_path)
    assert len([*(tmp_path / "runs").iterdir()]) == 4 * count


def test_the_same_seed_gives_the_same_numbers_and_another_others(tmp_path):
    found = {}
    for folder, seed in (("a", 0), ("b", 0), ("c", 5)):
        outcome = papers.reproduce(small(), "quick", seed, tmp_path / folder)
        found[folder] = np.load(tmp_path / folder / outcome.place / "numbers.npz")
    for name in found["a"].files:
        np.testing.assert_array_equal(found["a"][name], found["b"][name])
        assert (found["a"][name] != found["c"][name]).any()


def test_an_interrupted_result_goes_on_with_the_runs_it_has(tmp_path):
    def stopped(runner, **size):
        losses(runner, **size)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        papers.reproduce(small()._replace(measure=stopped), "quick", folder=tmp_path)
    runs = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    assert papers.reproduce(small(), "quick", folder=tmp_path).passed
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()} == runs


def test_a_broken_outcome_is_refused_by_name(tmp_path):
    outcome = papers.reproduce(small(), "quick", folder=tmp_path)
    (tmp_path / outcome.place / "outcome.json").write_text('{"claims": 3}')
    with pytest.raises(BadData, match=r"outcome\.json: is not an outcome"):
        papers.reproduce(small(), "quick", folder=tmp_path)


def test_an_unknown_result_is_refused_with_the_nearest():
    with pytest.raises(MainstemError, match="fedomd-fig1-left"):
        papers.chosen("fedomd-fig1-lefty", "full")


def test_those_for_a_gpu_come_last_in_full_only():
    wants = [result.gpu for result in papers.chosen("all", "full")]
    assert wants == sorted(wants)
    assert [r.name for r in papers.chosen("all", "quick")] == list(papers.catalogue())


def test_the_outcome_can_be_written_as_json(tmp_path):
    outcome = papers.reproduce(small(), "quick", folder=tmp_path)
    assert json.loads(json.dumps(papers.as_dict(outcome)))["claims"][0]["verdict"] == HOLDS
