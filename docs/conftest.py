"""While the sessions of a page run, the modules that the page tells its reader to write are there."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# "... to a file `name.py`:", and then the block.
WRITTEN = re.compile(r"file `(\w+)\.py`:\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def written_modules(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Makes the modules of the page importable."""
    modules = dict(WRITTEN.findall(Path(request.path).read_text()))
    for name, code in modules.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in modules:
        sys.modules.pop(name, None)
