"""The filled cache next door."""

from pathlib import Path

import pytest


@pytest.fixture
def shared() -> Path:
    """The filled cache that lies beside the repository, where there is one."""
    folder = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("there is no filled cache ../shared/data beside the repository")
    return folder


@pytest.fixture
def filled(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The filled cache as the cache in use."""
    monkeypatch.setenv("MAINSTEM_DATA", str(shared))
    return shared
