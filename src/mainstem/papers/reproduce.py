"""Reproduction: runs a published result, checks its claims, and stores the outcome."""

import hashlib
import importlib
import json
import pkgutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from mainstem import check
from mainstem.disk import npz, write
from mainstem.errors import BadData
from mainstem.papers import results
from mainstem.papers.evidence import verdict
from mainstem.papers.result import SIZES, Numbers, Result
from mainstem.report import figures
from mainstem.report.page import write_page

DECIDES = (  # the sources that decide the numbers: not the command line, not the results
    *("advice", "algorithms", "base", "datasets", "engines/simulate", "engines/run_context.py"),
    *(
        "measure",
        "parts",
        "problems",
        "report",
        "run",
        "streams",
        "theory",
        "random.py",
        "replay.py",
        "spec.py",
        "value",
    ),
)
PAPERS = "mainstem.papers."
ORDER = ("fedomd", "fedsea", "ofediq", "dynfedavg", "fedres")


class Checked(NamedTuple):
    """A claim with its evidence and verdict."""

    claim: str
    measured: str
    verdict: str
    recorded: str
    why: str

    @property
    def as_recorded(self) -> bool:
        """Whether the verdict is the one recorded in the spec."""
        return self.verdict in self.recorded.split(" or ")


class Outcome(NamedTuple):
    """The outcome of a reproduction."""

    name: str
    size: str
    seed: int
    digest: str
    finished: str
    seconds: float
    devices: list[str]
    claims: list[Checked]
    figure: str

    @property
    def passed(self) -> bool:
        """Whether every verdict is as recorded."""
        return all(each.as_recorded for each in self.claims)

    @property
    def place(self) -> Path:
        """Its folder, inside the folder of all outcomes."""
        return place_of(self.name, self.size, self.seed)


def catalogue() -> dict[str, Result]:
    """All results by name: one for each file in `results`, ordered by paper."""
    found = [
        importlib.import_module(f"{results.__name__}.{module.name}").RESULT
        for module in pkgutil.iter_modules(results.__path__)
    ]
    return {result.name: result for result in sorted(found, key=_place)}


def _place(result: Result) -> tuple[int, int, str]:
    family = ORDER.index(result.name.partition("-")[0])
    digits = "".join(filter(str.isdigit, result.name.partition("-")[2]))
    return family, int(digits or 0), result.name


def chosen(name: str, size: str) -> list[Result]:
    """The result of this name, or all; in the full size, those that need a GPU come last."""
    every = catalogue()
    check.one_of("reproduce", "the result", name, (*every, "all"))
    if name != "all":
        return [every[name]]
    if size == "quick":
        return [*every.values()]
    return sorted(every.values(), key=lambda result: result.gpu)


def listed(folder: Path) -> list[dict[str, Any]]:
    """A row for each result: its paper, its cost, and when it last passed in `folder`."""
    rows = []
    for result in catalogue().values():
        passed = [
            found
            for size in SIZES
            if (found := kept(folder / place_of(result.name, size, 0))) and found.passed
        ]
        last = max(passed, key=lambda found: found.finished, default=None)
        rows.append(
            {
                "result": result.name,
                "paper": result.paper,
                "claims": sum(claim.full is not None for claim in result.claims),
                "minutes": f"{result.minutes:g} on {'a GPU' if result.gpu else '2 cores'}",
                "last_passed": f"{last.finished} ({last.size})" if last else "never here",
            }
        )
    return rows


def reproduce(
    result: Result,
    size: str = "full",
    seed: int = 0,
    folder: Path = Path("runs/reproduce"),
    fresh: bool = False,
) -> Outcome:
    """Runs `result`, checks its claims, draws its figure, and stores everything in `folder`.

    What was finished before with the same code is read, not run again, unless `fresh`.
    """
    from mainstem.papers.report import content
    from mainstem.papers.runner import Runner

    place = folder / place_of(result.name, size, seed)
    key = digest(result, size, seed)
    before = None if fresh else kept(place)
    if before is not None and before.digest == key:
        return before
    runner = Runner(folder / "runs", seed)
    begin = time.monotonic()
    numbers = result.measure(runner, **result.size(size))
    seconds = time.monotonic() - begin + runner.saved
    outcome = Outcome(
        result.name,
        size,
        seed,
        key,
        datetime.now(UTC).isoformat(timespec="seconds"),
        round(seconds, 1),
        sorted(runner.devices),
        [*checked(result, size, numbers)],
        "figure.png",
    )
    place.mkdir(parents=True, exist_ok=True)
    figure = figures.save(result.draw(numbers), place / outcome.figure)
    write_page(place / "report.html", content(outcome, result, figure))
    write(place / "numbers.npz", npz(numbers))
    write(place / "outcome.json", json.dumps(as_dict(outcome), indent=1))
    return outcome


def checked(result: Result, size: str, numbers: Numbers) -> Iterator[Checked]:
    """Each claim of the size with its verdict."""
    for claim in result.claims:
        recorded = claim.recorded(size)
        if recorded is None:
            continue
        evidence = claim.shows(numbers)
        why = claim.why if recorded != "holds" else ""
        yield Checked(claim.says, evidence.measured, verdict(evidence), recorded, why)


def place_of(name: str, size: str, seed: int) -> Path:
    """The folder of the outcome of a size and seed, inside the folder of all outcomes."""
    return Path(name) / (size if seed == 0 else f"{size}-seed-{seed}")


def as_dict(outcome: Outcome) -> dict[str, Any]:
    """The outcome as a dictionary, for JSON."""
    return outcome._asdict() | {"claims": [each._asdict() for each in outcome.claims]}


def kept(place: Path) -> Outcome | None:
    """The outcome stored in a folder, if there is one."""
    file = place / "outcome.json"
    if not file.exists():
        return None
    try:
        content = json.loads(file.read_text())
        claims = [Checked(**each) for each in content.pop("claims")]
        return Outcome(claims=claims, **content)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BadData(f"{file}: is not an outcome of `reproduce`: remove it") from None


def digest(result: Result, size: str, seed: int) -> str:
    """A digest of everything that decides the outcome: the code, the claims, the size, the seed."""
    from mainstem.papers.runner import fingerprint, imported, source

    recorded = [[claim.says, claim.recorded(size), claim.why] for claim in result.claims]
    text = [result.name, size, repr(sorted(result.size(size).items())), seed, recorded]
    found: set[str] = set()
    ahead = {
        _home(each) for each in (result.measure, result.draw, *(c.shows for c in result.claims))
    }
    while ahead:
        module = ahead.pop()
        found.add(module)
        ahead |= {each for each in imported(module) if each.startswith(PAPERS)} - found
    text += [fingerprint(*DECIDES), *(source(module) for module in sorted(found))]
    return hashlib.sha256(json.dumps(text).encode()).hexdigest()[:20]


def _home(function: Any) -> str:
    """The module that defines a function or the function of a `functools.partial`."""
    return str(getattr(function, "func", function).__module__)
