"""The examples that the documents name do run."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from examples import gallery, together

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", gallery.GALLERY)
def test_the_gallery_draws(name):
    assert gallery.GALLERY[name]().axes


def test_sites_of_the_demo_share_no_image():
    for own in (False, True):
        images, digits = together.dealt(3, own)
        assert images.shape == (together.IMAGES, together.SITES, 64)
        different = len(set(map(bytes, images.reshape(-1, 64))))
        assert different >= 0.99 * together.IMAGES * together.SITES
        assert len(np.unique(digits)) == 10
        assert [len(np.unique(site)) for site in digits.T] == [2 if own else 10] * together.SITES


@pytest.fixture(scope="module")
def demo() -> str:
    """What `make federation-demo` prints."""
    command = [sys.executable, "-m", "examples.together"]
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [*command, folder], capture_output=True, text=True, timeout=300, cwd=ROOT
        )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_the_demo_shows_where_learning_together_wins_and_where_not(demo):
    found = re.findall(r"(-?\d\.\d+) ± (\d\.\d+)$", demo, re.MULTILINE)
    (wins, error), (loses, other) = [tuple(map(float, each)) for each in found]
    assert wins > 2 * error
    assert loses < -2 * other
    assert "live page of this run: http://127.0.0.1:" in demo
    assert len(re.findall(r"site-\d: mean loss", demo)) == together.SITES


@pytest.mark.slow
def test_a_second_demo_in_the_same_folder_is_a_new_run(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(together, "compared", lambda: 1.0)
    monkeypatch.chdir(ROOT)  # the processes import examples.together
    for _ in range(2):
        together.main(tmp_path)
        assert len(re.findall(r"site-\d: mean loss", capfd.readouterr().out)) == together.SITES
    assert all((tmp_path / name / "digits.toml").exists() for name in "12")


def test_each_demo_has_a_new_folder_and_deletes_nothing(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    made = [together.new_folder(tmp_path / "runs") for _ in range(3)]
    made.append(together.new_folder(tmp_path))
    assert [each.name for each in made] == ["1", "2", "3", "1"]
    assert not any(list(each.iterdir()) for each in made)
    assert (tmp_path / "notes.txt").read_text() == "mine"
