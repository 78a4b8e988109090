"""Fixtures for all tests: the filled cache beside the repository, and checks that a test restores global state."""

import gc
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from tests.report.browser import MISSING, Browser, missing


@pytest.fixture(autouse=True, scope="session")
def _caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What commands compile is for the other commands of these tests, and leaves the user's cache folder alone."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    os.environ["XDG_CACHE_HOME"] = str(shared / "caches")


@pytest.fixture(autouse=True, scope="session")
def _flags_of_the_gate() -> None:
    """XLA's flags are for the small programs of this process: commands optimise theirs a little.

    Tracing creates many objects that stay, and a program needs no line numbers.
    """
    gc.set_threshold(100_000, 50, 100)
    jax.config.update("jax_traceback_in_locations_limit", 0)
    jax.devices()  # now the flags are read
    os.environ["XLA_FLAGS"] = (
        "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
        " --xla_backend_optimization_level=1"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spreads the files of the federation, which often wait, evenly among the others, which compute.

    Without a browser, the tests of pages are left out, and the summary says so.
    """
    if missing():
        items[:] = [item for item in items if not item.get_closest_marker("browser")]
    files = dict.fromkeys(item.path for item in items)
    waiting = [file for file in files if file.parent.name == "federate"]
    others = [file for file in files if file.parent.name != "federate"]
    place = {file: n / len(group) for group in (waiting, others) for n, file in enumerate(group)}
    items.sort(key=lambda item: place[item.path])


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter") -> None:
    """Says in the last lines what was not run, and how to get it."""
    if missing():
        terminalreporter.write_line(f"not run, for want of {missing()}: tests of pages. {MISSING}")


@pytest.fixture(autouse=True, scope="module")
def _compiled_for_good() -> None:
    """Excludes everything compiled so far from garbage collection, which would only scan it again."""
    gc.freeze()


TESTS = itertools.count()
MAX_MAPS = 48_000  # Linux allows a process 65,530 memory maps; each compiled program has several


def free_programs() -> None:
    """Frees the compiled programs of this process if it has so many that the next may crash in XLA."""
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > MAX_MAPS:
        jax.clear_caches()


@pytest.fixture(autouse=True)
def _few_programs() -> Iterator[None]:
    yield
    if next(TESTS) % 20 == 0:
        free_programs()


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    """A `jax.enable_x64` that was held across a yield or an await stays on for all that follows in the thread."""
    yield
    assert not jax.config.jax_enable_x64


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium."""
    found = Browser()
    yield found
    found.close()


@pytest.fixture
def shared() -> Path:
    """The filled cache beside the repository, if there is one."""
    folder = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("there is no filled cache ../shared/data beside the repository")
    return folder


@pytest.fixture
def filled(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The filled cache as the cache in use."""
    monkeypatch.setenv("MAINSTEM_DATA", str(shared))
    return shared
