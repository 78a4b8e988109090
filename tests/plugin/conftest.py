"""The example plugin, installed the way pip leaves it: its code, and a dist-info that names its entry points."""

import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from tests.plugin import dist_info

PLUGIN = Path(__file__).resolve().parents[2] / "examples" / "plugin"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder on the path in which the plugin is installed."""
    folder = tmp_path / "installed"
    shutil.copytree(PLUGIN / "src", folder)
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    dist_info.installed(folder, project)
    monkeypatch.syspath_prepend(folder)
    yield folder
    sys.modules.pop("mainstem_topk", None)
