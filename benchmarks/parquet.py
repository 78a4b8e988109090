"""Parquet benchmark: data larger than memory, beside pyarrow's own scan. `python -m benchmarks.parquet [GB]`

It writes a folder of files, a client each, with 10 features of random float64 and a label. Both sides read all of
it, in turn and each in its own process: pyarrow's dataset as NumPy arrays, and OFedAvg of a logistic model.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.memory import PEAK

CLIENTS, FEATURES = 50, 10
GROUP = 2**20  # rows of a row group: pyarrow's default
ROUNDS = 3
SCAN = """
import sys, time, pyarrow.dataset
begin, rows = time.perf_counter(), 0
for batch in pyarrow.dataset.dataset(sys.argv[1], format="parquet").to_batches():
    columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
    rows += batch.num_rows
print(rows / (time.perf_counter() - begin))
"""
SIMULATE = """
import sys, tempfile, time, mainstem as ms
begin = time.perf_counter()
stream = ms.streams.parquet(sys.argv[1], target="label", classes=True)
with tempfile.TemporaryDirectory() as folder:
    run = ms.simulate(
        ms.ofedavg(0.1, rate=0.1, sync=ms.parts.every(10)), ms.problems.logistic(10), stream,
        steps=stream.steps, chunk=8192, folder=folder + "/run", progress=False)
    assert run.accuracy[-1] > 0.8, run.accuracy
print(stream.clients * stream.steps / (time.perf_counter() - begin))
"""


def write(folder: Path, gigabytes: float) -> None:
    """Writes files of this size in all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(0)
    model = draw.normal(size=FEATURES)
    rows = int(gigabytes * 1e9 / (8 * FEATURES) / CLIENTS)
    names = [f"x{n}" for n in range(FEATURES)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("label", pa.int64())])
    for client in range(CLIENTS):
        path = folder / f"{client:02}.parquet"
        with pq.ParquetWriter(path, schema, use_dictionary=["label"]) as writer:
            for done in range(0, rows, GROUP):
                shown = draw.normal(size=(FEATURES, min(GROUP, rows - done)))
                label = (model @ shown > 0).astype(int)
                writer.write_table(pa.table([*shown, label], schema=schema), row_group_size=GROUP)


def measured(code: str, folder: Path) -> tuple[float, float]:
    """(rows per second, peak resident size in MiB) of a process that runs `code`."""
    done = subprocess.run(
        [sys.executable, "-c", code + PEAK, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    speed, peak = map(float, done.stdout.split()[-2:])
    return speed, peak / 2**20


def main(gigabytes: float = 1.0) -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, gigabytes)
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(f"\n{size / 1e9:.1f} GB of Parquet, {CLIENTS} files, {FEATURES} features")
        found: dict[str, list[tuple[float, float]]] = {"scan": [], "simulate": []}
        for _ in range(ROUNDS):
            for side, code in (("scan", SCAN), ("simulate", SIMULATE)):
                found[side].append(measured(code, folder))
    speed = {side: median(each for each, _ in found[side]) for side in found}
    peak = max(each for _, each in found["simulate"])
    print(f"  {'pyarrow, scan':44}{speed['scan'] / 1e6:8.2f} million rows/s")
    print(f"  {'mainstem, logistic model':44}{speed['simulate'] / 1e6:8.2f} million rows/s")
    ratio = speed["simulate"] / speed["scan"]
    print(f"  {'ratio':44}{ratio:8.2f} (asked: at least 0.5)")
    print(f"  {'peak resident size':44}{peak:8.0f} MiB (asked: below 2,000)")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
