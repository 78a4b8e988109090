"""Makes the notebooks of `examples/notebooks` from the scripts there: `python tools/notebooks.py`.

Each is executed, so that a reader sees what it prints and draws. A script's cells begin with `# %%`, those of
text with `# %% [markdown]`.
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"


def scripts() -> list[Path]:
    """The scripts."""
    return sorted(FOLDER.glob("*.py"))


def notebook(script: Path) -> Any:
    """The notebook of a script, not executed."""
    cells = []
    for n, part in enumerate(re.split(r"^# %%", script.read_text(), flags=re.MULTILINE)[1:]):
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            text = re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE)
            cell = nbformat.v4.new_markdown_cell(text)
        else:
            cell = nbformat.v4.new_code_cell(body.strip())
        cell["id"] = f"cell-{n}"  # the same each time
        cells.append(cell)
    made = nbformat.v4.new_notebook(cells=cells)
    made["metadata"]["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    return made


def executed(script: Path, folder: Path) -> Any:
    """The notebook of a script, after a kernel has run it in this folder."""
    made = notebook(script)
    return NotebookClient(
        made, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()


def main() -> None:
    """Writes all notebooks, or those named."""
    for script in scripts():
        if sys.argv[1:] and script.stem not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = executed(script, Path(folder))
        for cell in made["cells"]:
            cell["metadata"] = {}  # the times of execution
            if cell["cell_type"] == "code":
                cell["outputs"] = [
                    each
                    for each in cell["outputs"]
                    if each["output_type"] != "display_data" or each["data"].get("text/html") != ""
                ]  # bars of progress leave these
        nbformat.write(made, script.with_suffix(".ipynb"))
        print(script.with_suffix(".ipynb").name)


if __name__ == "__main__":
    main()
