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

README = (ROOT / "README.md").read_text()
NUMBER = re.compile(r"-?\d+\.?(\d*)(e[+-]\d+)?")


def shown(text: str, head: str) -> list[str]:
    """The rows of a table, below the line that begins with `head`."""
    found = re.search(rf"^{head}.*\n((?:.+\d.*\n)+)", text, re.MULTILINE)
    assert found, text
    return [row for row in found[1].splitlines() if "seeds" not in row]


def same_rows(mine: list[str], documented: list[str]) -> int:
    """Checks that rows agree, but for one in the last decimal, where machines differ; returns their number."""
    assert len(mine) == len(documented)
    for row, other in zip(mine, documented, strict=True):
        assert NUMBER.sub("0", row).split() == NUMBER.sub("0", other).split()
        for one, two in zip(NUMBER.finditer(row), NUMBER.finditer(other), strict=True):
            assert (len(one[1]), one[2]) == (len(two[1]), two[2]), (row, other)
            last = 10.0 ** -len(one[1]) * float(f"1{one[2] or ''}") if one[1] else 0
            assert abs(float(one[0]) - float(two[0])) <= 1.5 * last, (row, other)
    return len(mine)


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
def test_its_table_is_that_of_the_readme(demo):
    head = "share of digits guessed right"
    assert same_rows(shown(demo, head), shown(README, head)) == 2


@pytest.mark.slow
def test_the_table_of_make_demo_is_that_of_the_readme(tmp_path):
    command = [sys.executable, "-m", "mainstem.cli", "demo", "--folder", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    head = r"algorithm +accuracy +difference"
    assert same_rows(shown(ended.stdout, head), shown(README, head)) == 5


def test_tables_with_other_digits_are_noticed():
    row = "FedOGD, 3 %  0.947180 ± 0.000037  -0.2067 ± 0.0003  1.04e+10  99.0 %"
    last_digits = "FedOGD, 3 %  0.947181 ± 0.000036  -0.2068 ± 0.0004  1.05e+10  99.1 %"
    assert same_rows([row], [last_digits]) == 1
    for old, new in [
        ("0.947180", "0.947182"),
        ("FedOGD", "FedSGD"),
        ("3 %", "4 %"),
        ("e+10", "e+09"),
    ]:
        with pytest.raises(AssertionError):
            same_rows([row], [row.replace(old, new)])
    for other in ([row, row], [row.replace("0.2067", "0.207")], []):
        with pytest.raises(AssertionError):
            same_rows([row], other)


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
