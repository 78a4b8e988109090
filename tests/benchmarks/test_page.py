"""The performance page."""

import json

from benchmarks import page


def document(device, *rows):
    machine = {
        "device": device,
        "devices": 1,
        "processor": "some processor",
        "cores": 2,
        "memory": 2**34,
        "python": "3.12",
        "versions": {"jax": "0.10"},
    }
    return {"machine": machine, "rows": list(rows)}


SPEED = {
    "row": "mlp",
    "title": "FedOGD, MLP",
    "unit": "ms/step",
    "goal": 0.03,
    "limit": {"value": 0.001, "by": "bandwidth"},
    "sides": [
        {"name": "mainstem", "value": 0.02, "share": 0.05},
        {"name": "PyTorch", "value": 0.5, "ratio": 25.0, "asked": 2, "share": 0.002},
        {"name": "pfl", "error": "not installed: pfl"},
    ],
}
SCALING = {
    "row": "scaling-clients",
    "title": "against clients",
    "unit": "client-steps/s",
    "sides": [{"name": "10", "x": 10, "value": 1e6}, {"name": "100", "x": 100, "value": 3e6}],
}


def test_shows_machine_goal_limit_ratios_and_errors():
    text = "".join(page.page([document("cpu", SPEED, SCALING)]))
    for expected in (
        "## cpu, 2 cores",
        "jax 0.10",
        "Goal: 0.0300 ms/step. Limit, by bandwidth: 0.00100 ms/step.",
        "| mainstem | 0.0200 |  | 5.0 % |",
        "| PyTorch | 0.500 | 25.0 (asked: 2) | 0.2 % |",
        "| pfl | not measured: not installed: pfl |  |  |",
        "images/performance-scaling.png",
    ):
        assert expected in text
    assert "### against clients" not in text


def test_a_machine_that_was_measured_in_parts_is_one_section():
    newer = SPEED | {"title": "measured again"}
    found = page.merged([document("cpu", SPEED), document("cpu", SCALING, newer), document("gpu")])
    assert [each["machine"]["device"] for each in found] == ["cpu", "gpu"]
    assert [row["title"] for row in found[0]["rows"]] == ["against clients", "measured again"]


def test_is_made_from_files(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "figure", lambda documents, path: path.write_text("drawn"))
    folder = tmp_path / "docs" / "performance"
    folder.mkdir(parents=True)
    (folder / "cpu.json").write_text(json.dumps(document("cpu", SPEED, SCALING)))
    page.main(tmp_path / "docs" / "performance.md", folder)
    assert "FedOGD, MLP" in (tmp_path / "docs" / "performance.md").read_text()
    assert (tmp_path / "docs" / "images" / page.FIGURE).exists()
