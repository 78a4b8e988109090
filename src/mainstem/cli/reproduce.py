"""`mainstem reproduce`: runs the published results again and checks their claims."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainstem.cli import output
from mainstem.cli.options import Json

if TYPE_CHECKING:
    from mainstem.papers.reproduce import Outcome


def reproduce(
    name: Annotated[str | None, typer.Argument(help="One result, or all.")] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Every result: paper, cost, when it last passed.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="The small version: about 40 s for each.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
    folder: Annotated[Path, typer.Option(help="Where runs, figures and verdicts go.")] = Path(
        "runs/reproduce"
    ),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Check again what is already finished.")
    ] = False,
    json: Json = False,
) -> None:
    """Run a paper's experiment again, draw its figure, and check each of its claims.

    The exit code is 0 only if every claim has the verdict recorded for that size: holds, does not hold (for
    a known reason), or undecided within the spread. The same command resumes after an interruption.

    Example: mainstem reproduce fedomd-fig1-left --quick
    """
    from mainstem import compilation_cache
    from mainstem.papers import reproduce as papers

    if list_ or name is None:
        rows = papers.listed(folder)
        output.as_json(rows) if json else output.as_table(rows)
        return
    size = "quick" if quick else "full"
    chosen = papers.chosen(name, size)
    outcomes = []
    for place, result in enumerate(chosen, start=1):
        if not json and len(chosen) > 1:
            print(f"[{place}/{len(chosen)}] {result.name}", flush=True)
        with compilation_cache.used():
            outcomes.append(papers.reproduce(result, size, seed, folder, fresh))
        if not json:
            _print(outcomes[-1], result.paper, folder)
    if json:
        output.as_json([papers.as_dict(each) for each in outcomes])
    elif len(outcomes) > 1:
        output.as_table([_row(each) for each in outcomes])
    if not all(each.passed for each in outcomes):
        raise typer.Exit(1)


def _print(outcome: "Outcome", paper: str, folder: Path) -> None:
    """Prints each claim, what was measured, and the verdict."""
    where = ", ".join(outcome.devices) or "no device"
    print(f"{outcome.name}: {paper} ({outcome.size}, {outcome.seconds:.0f} s, {where})")
    for each in outcome.claims:
        print(f"  {each.verdict:14} {each.claim}\n{'':17}{each.measured}")
        if not each.as_recorded:
            print(f"{'':17}NOT AS RECORDED: the spec says that it {_says(each.recorded)}")
        elif each.why:
            print(f"{'':17}as recorded: {each.why}")
    place = folder / outcome.place
    print(f"  figure: {place / outcome.figure}, report: {place / 'report.html'}\n", flush=True)


def _says(verdict: str) -> str:
    return verdict.replace("undecided", "is undecided")


def _row(outcome: "Outcome") -> dict[str, Any]:
    found = [each.verdict for each in outcome.claims]
    counts = {word: found.count(word) for word in ("holds", "does not hold", "undecided")}
    verdict = "as recorded" if outcome.passed else "CHANGED"
    return {"result": outcome.name, **counts, "verdict": verdict, "seconds": round(outcome.seconds)}
