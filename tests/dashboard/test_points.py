"""Points of the live page's charts."""

import numpy as np
import pytest

from mainstem.dashboard import points


def moment(time, version=0, clients=("a", "b"), **columns):
    whole = {
        "samples": [0, 0],
        "loss": [0.0, 0.0],
        "bytes_up": [0, 0],
        "staleness": [0, 0],
        "norm": [0.0, 0.0],
    }
    rest = {"epoch": 1, "bytes_down": 0, "candidate": None, "refused": {}, "states": {}}
    return {"time": time, "version": version, "clients": [*clients], **rest, **whole, **columns}


def test_losses_are_those_of_what_was_learnt_in_between():
    before = moment(0.0, samples=[10, 20], loss=[5.0, 8.0])
    now = moment(10.0, version=5, samples=[20, 25], loss=[9.0, 9.0])
    found = points.point(now, before, [])
    assert found["loss"] == {"all sites": [5 / 15], "a": [4 / 10], "b": [1 / 5]}
    assert found["merges"] == {"merges": [0.5]}


def test_the_model_and_the_candidate_are_compared_by_their_mean_losses():
    sums = {"version": 3, "samples": 40, "loss": 10.0, "candidate": 30.0, "regret_at_least": 0.0}
    found = points.point(moment(0.0, candidate=sums), None, [])
    assert found["candidate"] == {"the model": [0.25], "the candidate": [0.75]}
    begun = {**sums, "samples": 0, "loss": 0.0, "candidate": 0.0}
    assert "candidate" not in points.point(moment(0.0, candidate=begun), None, [])


def test_together_and_alone_are_compared_on_what_came_in_between():
    before = {"clients": 2, "samples": 40, "loss": 10.0, "alone": 30.0}
    now = {"clients": 2, "samples": 60, "loss": 12.0, "alone": 40.0}
    found = points.point(moment(10.0, alone=now), moment(0.0, alone=before), [])
    assert found["alone"] == {"together": [0.1], "alone": [0.5]}
    for were in (None, now, {**before, "clients": 1}):
        assert "alone" not in points.point(moment(10.0, alone=now), moment(0.0, alone=were), [])
    assert "alone" not in points.point(moment(10.0), moment(0.0), [])


def test_a_site_without_samples_has_no_loss():
    before, now = moment(0.0), moment(10.0, samples=[4, 0], loss=[2.0, 0.0])
    found = points.point(now, before, [])["loss"]
    assert found["all sites"] == [0.5]
    assert np.isnan(found["b"][0])


def test_a_site_that_is_new_counts_from_the_next_moment_on():
    before = moment(0.0, clients=("a", "c"), samples=[10, 90], loss=[5.0, 9.0])
    now = moment(10.0, samples=[20, 7], loss=[9.0, 7.0])
    assert points.point(now, before, [])["loss"]["all sites"] == [0.4]


def test_a_run_that_was_set_back_has_no_negative_rate():
    before, now = moment(0.0, version=9, samples=[9, 9], loss=[9.0, 9.0]), moment(10.0, version=2)
    found = points.point(now, before, [])
    assert "merges" not in found
    assert "loss" not in found


def test_many_sites_are_a_band_and_those_that_are_chosen():
    names = [f"s{n}" for n in range(101)]
    norms = [float(n) for n in range(101)]
    zeros = [0] * 101
    many = moment(
        0.0, clients=names, norm=norms, samples=zeros, loss=zeros, bytes_up=zeros, staleness=zeros
    )
    found = points.point(many, None, ["s7"])["norm"]
    assert found == {
        "median site, and the middle half": [50.0, 25.0, 75.0],
        "largest of all": [100.0],
        "s7": [7.0],
    }


def test_the_moment_before_is_a_window_earlier():
    moments = [moment(float(t)) for t in (0, 5, 9, 12, 30)]
    times = [None if (m := points.earlier(moments, n)) is None else m["time"] for n in range(5)]
    assert times == [None, 0.0, 0.0, 0.0, 12.0]


@pytest.mark.parametrize("count", [3, 60])
def test_a_chart_has_a_value_of_each_line_at_each_moment(count):
    names = [f"s{n}" for n in range(count)]
    columns = {
        key: [float(n) for n in range(count)]
        for key in ("samples", "loss", "bytes_up", "staleness", "norm")
    }
    moments = [
        moment(
            float(t),
            t,
            names,
            **{k: [v * t for v in c] for k, c in columns.items()},
            refused={"stale": t} if t > 3 else {},
        )
        for t in range(6)
    ]
    for chart in points.charts(moments, ["s1"]):
        assert chart["x"]["values"] == [float(t) for t in range(6)]
        assert all(len(line["y"]) == 6 for line in chart["lines"])
        colours = {line["name"]: line["colour"] for line in chart["lines"]}
        assert colours.get("s1", 1) == (1 if count > points.FEW else 2) or "s1" not in colours
    refused = next(chart for chart in points.charts(moments, []) if chart["id"] == "refused")
    assert refused["lines"][0]["y"] == [None] * 4 + [4.0, 5.0]
