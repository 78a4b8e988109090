"""The filled cache next door, and what no test may leave behind."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest


@pytest.fixture(autouse=True, scope="session")
def _flags_of_the_gate() -> None:
    """XLA's flags are for the small programs of this process: commands that tests start optimise theirs."""
    jax.devices()  # now they are read
    os.environ["XLA_FLAGS"] = "--xla_cpu_use_fusion_emitters=false"


@pytest.fixture(autouse=True, scope="module")
def _compiled_for_good() -> None:
    """What was compiled before is there to stay: a collection of garbage need not look at it again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    """A `jax.enable_x64` that was held across a yield or an await stays on for all that follows in the thread."""
    yield
    assert not jax.config.jax_enable_x64


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
