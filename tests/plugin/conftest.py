"""The example plugin, installed the way pip leaves it: its code, and a dist-info that names its entry points."""

import shutil
import sys
import tomllib
from pathlib import Path

import pytest

PLUGIN = Path(__file__).resolve().parents[2] / "examples" / "plugin"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder on the path in which the plugin is installed."""
    place = tmp_path / "site"
    shutil.copytree(PLUGIN / "src", place)
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    info = place / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head)
    lines = []
    for group, names in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {where}" for name, where in names.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(place)
    yield place
    sys.modules.pop("mainstem_topk", None)
