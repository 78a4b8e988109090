"""Performance page: `python -m benchmarks.page [docs/performance.md] [docs/performance]`.

The page and its figure are made from the JSON files that the benchmarks wrote; nothing is measured.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.command import head
from benchmarks.compare import shown

AXES = ("clients", "parameters", "devices")
FIGURE = "performance-scaling.png"
HEAD = """# How fast

Made by `make performance` from the files in `docs/performance`; do not edit. `make bench` writes them on a CPU,
and `make bench-gpu` where there is a GPU.

All sides of a row do the same work, unless their names say more, in the same run, on the same machine. On a GPU
the losses of FedOMD stay on the device, on all sides but the one that reads them. A round measures each side once,
in turn; the table has the medians of the rounds, without compilation. *Ratio* is how many times longer a side
takes than the first one (for memory: how many times more it uses): above 1, mainstem is faster. The *limit* is the
least time that the work can take on the device, by its operations or by its bytes, and *share* is how much of it a
side reaches; both are shown for devices whose peak rates are known. The formulas are in
[`benchmarks/limits.py`](../benchmarks/limits.py).

"""
CAPTION = """FedOGD with logistic regression. On the left and on the right, 10 features are generated; in the
middle, the features are rows of a table, and there are 1,000 clients. Devices of a CPU share its
cores.
"""


def page(documents: list[dict[str, Any]]) -> Iterator[str]:
    """Yields the parts of the page, the figure's link included."""
    yield HEAD
    if any(_is_scaling(row) for each in documents for row in each["rows"]):
        yield "## Scaling\n\n"
        yield f"![Client-steps per second against clients, parameters and devices](images/{FIGURE})\n\n"
        yield CAPTION
    for document in documents:
        yield f"\n## {document['machine']['device']}, {document['machine']['cores']} cores\n\n"
        yield "".join(f"{line}  \n" for line in head(document["machine"], absent=False))
        for row in document["rows"]:
            if not _is_scaling(row):
                yield from _section(row)


def _is_scaling(row: dict[str, Any]) -> bool:
    return row["row"].startswith("scaling-")


def _section(row: dict[str, Any]) -> Iterator[str]:
    yield f"\n### {row['title']}\n\n"
    facts = []
    if "goal" in row:
        facts.append(f"Goal: {shown(row['goal'])} {row['unit']}.")
    if "limit" in row:
        facts.append(
            f"Limit, by {row['limit']['by']}: {shown(row['limit']['value'])} {row['unit']}."
        )
    if facts:
        yield " ".join(facts) + "\n\n"
    shares = any("share" in side for side in row["sides"])
    yield f"| side | {row['unit']} | ratio |" + (" share |" if shares else "") + "\n"
    yield "|---|---|---|" + ("---|" if shares else "") + "\n"
    for side in row["sides"]:
        yield _line(side, shares)


def _line(side: dict[str, Any], shares: bool) -> str:
    if "error" in side:
        cells = [side["name"], f"not measured: {side['error']}".replace("|", "\\|"), ""]
    else:
        ratio = shown(side["ratio"]) if "ratio" in side else ""
        if "asked" in side:
            ratio += f" (asked: {side['asked']:g})"
        cells = [side["name"], shown(side["value"]), ratio]
    if shares:
        cells.append(f"{100 * side['share']:.1f} %" if "share" in side else "")
    return f"| {' | '.join(cells)} |\n"


def figure(documents: list[dict[str, Any]], path: Path) -> None:
    """Draws client-steps per second against each axis, a line for each machine."""
    import matplotlib.pyplot as plt

    drawing, panels = plt.subplots(
        1, len(AXES), figsize=(11, 3.4), layout="constrained", sharey=True
    )
    for axis, panel in zip(AXES, panels, strict=True):
        for document in documents:
            rows = {row["row"]: row for row in document["rows"]}
            sides = rows.get(f"scaling-{axis}", {"sides": []})["sides"]
            if sides:
                label = f"{document['machine']['device']}, {document['machine']['cores']} cores"
                x, y = zip(*((side["x"], side["value"]) for side in sides), strict=True)
                panel.loglog(x, y, marker="o", label=label)
        panel.set_xlabel(axis)
        panel.grid(alpha=0.3)
    panels[-1].set_xscale("log", base=2)
    panels[-1].xaxis.set_major_formatter("{x:g}")
    panels[0].set_ylabel("client-steps per second")
    panels[0].legend(fontsize="small")
    drawing.savefig(path, dpi=130)
    plt.close(drawing)


def merged(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One document for each machine: a machine may have been measured in parts, with a file for each."""
    machines: dict[tuple[str, int], dict[str, Any]] = {}
    for each in found:
        machine = each["machine"]
        same = machines.setdefault(
            (machine["device"], machine["cores"]), {"machine": machine, "rows": []}
        )
        names = {row["row"] for row in each["rows"]}
        same["rows"] = [row for row in same["rows"] if row["row"] not in names] + each["rows"]
    return list(machines.values())


def main(file: Path = Path("docs/performance.md"), folder: Path = Path("docs/performance")) -> None:
    """Writes the page and its figure."""
    documents = merged([json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))])
    images = file.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    figure(documents, images / FIGURE)
    file.write_text("".join(page(documents)))
    print(file)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
