"""The examples that the documents name do run."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples import gallery, together


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


@pytest.mark.slow
def test_the_demo_shows_where_learning_together_wins_and_where_not(tmp_path):
    command = [sys.executable, "-m", "examples.together", str(tmp_path / "demo")]
    root = Path(__file__).parents[1]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=root)
    assert ended.returncode == 0, ended.stderr
    found = re.findall(r"(-?\d\.\d+) ± (\d\.\d+)$", ended.stdout, re.MULTILINE)
    (wins, error), (loses, other) = [tuple(map(float, each)) for each in found]
    assert wins > 2 * error
    assert loses < -2 * other
    assert "live page of this run: http://127.0.0.1:" in ended.stdout
    assert len(re.findall(r"site-\d: mean loss", ended.stdout)) == together.SITES
