"""The command of a benchmark: which rows it measures, in which size, and where the JSON goes."""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks import machine
from benchmarks.compare import Result, Setting, lines

Benchmark = Callable[[Setting], Iterable[Result]]


def main(doc: str, benchmarks: dict[str, Benchmark], arguments: list[str] | None = None) -> None:
    """Runs the benchmarks named on the command line, or all; prints each row when it is there."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(benchmarks))
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the code")
    parser.add_argument("--rounds", type=int, help="measurements of each side")
    parser.add_argument(
        "--json", type=Path, help="write the rows to this file, beside those of earlier runs"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(benchmarks):
        parser.error(
            f"there is no {', '.join(sorted(unknown))}; choose from {', '.join(benchmarks)}"
        )
    patience = 10.0 if machine.on_gpu() else 60.0
    setting = Setting(options.small, options.rounds or (2 if options.small else 5), patience)
    hardware = machine.described()
    for line in head(hardware):
        print(line, flush=True)
    for name in options.names or benchmarks:
        begin = time.perf_counter()
        try:
            for result in benchmarks[name](setting):
                print("\n".join(lines(result)), flush=True)
                if options.json:
                    write(options.json, hardware, result)
        except Exception as error:  # the other benchmarks go on
            print(f"\n{name}: not measured, {type(error).__name__}: {error}", flush=True)
        print(f"  [{name}: {time.perf_counter() - begin:.0f} s]", flush=True)


def head(hardware: Result, absent: bool = True) -> list[str]:
    """The machine and the versions as text; also what is not installed here, if `absent`."""
    versions = ", ".join(f"{name} {version}" for name, version in hardware["versions"].items())
    lacking = machine.missing() if absent else []
    return [
        f"{hardware['devices']} x {hardware['device']}; {hardware['processor']}, "
        f"{hardware['cores']} cores, {hardware['memory'] / 2**30:.0f} GiB",
        f"Python {hardware['python']}, {versions}",
        *([f"not installed: {', '.join(lacking)}"] if lacking else []),
    ]


def write(path: Path, hardware: Result, result: Result) -> None:
    """Adds the row to the file, in the place of one of the same name; rows of another machine are dropped."""
    before = json.loads(path.read_text()) if path.exists() else {}
    kept = before["rows"] if before.get("machine") == hardware else []
    rows = {each["row"]: each for each in [*kept, result]}
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": hardware, "rows": list(rows.values())}
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
