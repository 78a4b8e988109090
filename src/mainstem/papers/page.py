"""Results page: `python -m mainstem.papers.page [docs/results.md] [runs/reproduce]`.

The page is generated from the outcomes that `mainstem reproduce all` stored; nothing is run.
"""

import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from mainstem.errors import MainstemError
from mainstem.papers.evidence import FAILS, HOLDS, UNDECIDED
from mainstem.papers.reproduce import Outcome, catalogue, kept, place_of
from mainstem.papers.result import Result

SIGNS = {HOLDS: "holds", FAILS: "**does not hold**", UNDECIDED: "*undecided*"}
HEAD = """# Every published result, run again

Made by `mainstem reproduce all` and `make results`; do not edit. Each claim is a sentence of the paper. It
holds if the 99 % interval over seeds of everything that it compares lies on the right side of zero, does not
hold if one lies on the wrong side, and is undecided otherwise. Claims that do not hold stay here, with the
reason; `mainstem reproduce` exits with 0 only if every verdict is the one recorded. Bands and whiskers in the
figures are two standard errors over seeds. [How verdicts are reached](reproduce.md).

"""


def page(folder: Path, images: str) -> Iterator[str]:
    """Yields the parts of the page."""
    outcomes = {}
    for name in catalogue():
        found = kept(folder / place_of(name, "full", 0))
        if found is None:
            raise MainstemError(f"{folder}: {name} is not there in full: mainstem reproduce {name}")
        outcomes[name] = found
    yield HEAD
    yield "| result | paper | holds | does not | undecided | time | device |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for result, outcome in zip(catalogue().values(), outcomes.values(), strict=True):
        yield _summary(result, outcome)
    yield f"\nA time counts runs that other figures share. {_total(folder / 'runs')}\n"
    for result, outcome in zip(catalogue().values(), outcomes.values(), strict=True):
        yield from _section(result, outcome, images)


def _summary(result: Result, outcome: Outcome) -> str:
    found = [each.verdict for each in outcome.claims]
    counts = " | ".join(str(found.count(word)) for word in (HOLDS, FAILS, UNDECIDED))
    link = f"[{result.name}](#{result.name})"
    return f"| {link} | {result.paper} | {counts} | {_time(outcome)} | {_device(outcome)} |\n"


def _section(result: Result, outcome: Outcome, images: str) -> Iterator[str]:
    yield f"\n## {result.name}\n\n{result.paper}. {result.about}\n\n"
    yield f"![{result.about}]({images}/{result.name}.png)\n\n"
    yield "| verdict | claim | measured |\n|---|---|---|\n"
    for each in outcome.claims:
        measured = each.measured.replace("|", "\\|")
        yield f"| {SIGNS[each.verdict]} | {each.claim} | {measured} |\n"
    reasons = dict.fromkeys(each.why for each in outcome.claims if each.why)
    if reasons:
        yield "\n" + "".join(f"- {why}\n" for why in reasons)
    size = [f"{key} {_plain(value)}" for key, value in result.full.items()]
    text = "; ".join([*size, f"first seed {outcome.seed}", _time(outcome), _device(outcome)])
    yield f"\n`mainstem reproduce {result.name}`: {text}.\n"
    if result.chosen:
        yield "\nChosen where the paper leaves it open:\n\n"
        yield "".join(f"- {each}\n" for each in result.chosen)


def _total(runs: Path) -> str:
    """The time of all runs together, each counted once."""
    spent: defaultdict[str, float] = defaultdict(float)
    for run in runs.iterdir():
        devices = json.loads((run / "environment.json").read_text())["devices"]
        spent[", ".join(sorted(map(_kind, devices)))] += float((run / "seconds").read_text())
    text = ", ".join(f"{seconds / 60:.0f} min on {kind}" for kind, seconds in sorted(spent.items()))
    return f"All runs together, each counted once: {text}."


def _kind(device: str) -> str:
    return device.partition("(")[2].rstrip(")")


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _time(outcome: Outcome) -> str:
    return (
        f"{outcome.seconds:.0f} s" if outcome.seconds < 100 else f"{outcome.seconds / 60:.0f} min"
    )


def _device(outcome: Outcome) -> str:
    kinds = {_kind(each) for each in outcome.devices}
    return ", ".join(sorted(kinds)) or "none"


def main(file: Path = Path("docs/results.md"), folder: Path = Path("runs/reproduce")) -> None:
    """Writes the page and its figures."""
    images = file.parent / "images" / "results"
    text = "".join(page(folder, "images/results"))
    images.mkdir(parents=True, exist_ok=True)
    for name in catalogue():
        shutil.copy(folder / place_of(name, "full", 0) / "figure.png", images / f"{name}.png")
    file.write_text(text)
    print(file)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
