"""The page of all results."""

import pytest

from mainstem.errors import MainstemError
from mainstem.papers import page as pages
from mainstem.papers import reproduce as papers
from mainstem.papers.evidence import FAILS
from tests.papers.test_reproduce import small


@pytest.fixture
def only(monkeypatch):
    """A catalogue of one result that comes out as recorded and one that does not."""
    found = {
        "fedsea-small": small(),
        "fedsea-other": small(FAILS, "As recorded before.")._replace(name="fedsea-other"),
    }
    monkeypatch.setattr(pages, "catalogue", lambda: found)
    return found


def test_shows_every_claim_with_its_figure_command_time_and_device(only, tmp_path):
    for result in only.values():
        papers.reproduce(result, folder=tmp_path / "runs")
    file = tmp_path / "docs" / "results.md"
    pages.main(file, tmp_path / "runs")
    text = file.read_text()
    for expected in (
        *("It learns.", "Only in full.", "As recorded before.", "steps 20; seeds 4", "; cpu."),
        "All runs together, each counted once: 0 min on cpu.",
    ):
        assert expected in text
    for name in only:
        assert f"`mainstem reproduce {name}`" in text
        assert (file.parent / "images" / "results" / f"{name}.png").stat().st_size > 0


def test_refuses_while_a_result_is_missing(only, tmp_path):
    papers.reproduce(only["fedsea-small"], folder=tmp_path / "runs")
    with pytest.raises(MainstemError, match="mainstem reproduce fedsea-other"):
        pages.main(tmp_path / "results.md", tmp_path / "runs")
    assert not (tmp_path / "results.md").exists()
