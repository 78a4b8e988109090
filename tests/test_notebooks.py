"""The notebooks run, and are those of their scripts; a kernel shows values and runs in their rich form."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tools import notebooks

SCRIPTS = notebooks.scripts()
each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


@each_script
def test_a_notebook_is_that_of_its_script(script: Path) -> None:
    kept = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    assert [(each["cell_type"], each["source"]) for each in kept["cells"]] == [
        (each["cell_type"], each["source"]) for each in notebooks.notebook(script)["cells"]
    ]
    assert all(each["outputs"] for each in kept["cells"][-1:] if each["cell_type"] == "code")


@each_script
def test_a_notebook_runs(script: Path, tmp_path: Path) -> None:
    outputs = [
        output
        for cell in notebooks.executed(script, tmp_path)["cells"]
        if cell["cell_type"] == "code"
        for output in cell["outputs"]
    ]
    assert any("image/png" in str(output) for output in outputs) or "five_sites" in script.name
    assert not any(output["output_type"] == "error" for output in outputs)


def test_values_and_runs_have_a_rich_form(tmp_path: Path) -> None:
    cells = [
        "import mainstem as ms; ms.fedogd(0.1)",
        "ms.streams.digits(clients=5)",
        "run = ms.simulate(ms.fedogd(0.1), ms.problems.softmax(64, 10), ms.streams.digits(5), steps=20); run",
        "ms.simulate(ms.fedogd(0.1), ms.problems.softmax(64, 10), ms.streams.digits(5), steps=20, progress=True);",
    ]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(made, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    algorithm, stream, run, quiet = (cell["outputs"] for cell in made["cells"])
    assert "leftarrow" in algorithm[-1]["data"]["text/markdown"]
    assert "5 clients" in stream[-1]["data"]["text/markdown"]
    assert "| hidden |" in stream[-1]["data"]["text/markdown"]
    shown = run[-1]["data"]["text/html"]
    assert "<table>" in shown
    assert "image/png" in shown
    assert not any(
        "progress" in str(output) for output in quiet
    )  # the bar is gone when the run is done
