"""Run folder: spec, environment, trace and model, and during the run a checkpoint to resume from.

Every file is written under a temporary name, synced to disk and renamed, so that a kill at any time
leaves either the old state or the new one. A finished run contains the checksums of its files.
"""

import hashlib
import io
import json
import platform
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from filelock import BaseFileLock

from mainstem.disk import beside, lock, move, npz, write
from mainstem.errors import BrokenRun, FinishedRun, first_line
from mainstem.run import trace
from mainstem.spec import difference

FORMAT = 3  # of run folders; 3: run.json lists the seeds that `diverged`
PACKAGES = ("mainstem", "jax", "jaxlib", "numpy", "scipy", "optax", "pyarrow")


def environment() -> dict[str, Any]:
    """The environment of the run: versions, platform, devices."""
    import jax

    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "devices": [f"{device} ({device.device_kind})" for device in jax.devices()],
        "packages": versions,
    }


def claim(path: Path, spec: Mapping[str, Any]) -> BaseFileLock:
    """Makes `path` the folder of a run of `spec`, new or to be resumed; returns its lock, held until `release`.

    Raises an error if the folder contains another experiment, if this one is already finished, or if
    another process is running it.
    """
    trace.pyarrow()  # if it is missing, fail before the computation
    _not_foreign(path)
    path.mkdir(parents=True, exist_ok=True)
    held = lock(path)
    try:
        _take(path, tomli_w.dumps(spec))
    except BaseException:
        held.release()
        if (path / "run.json").exists() or not (path / "spec.toml").exists():
            (path / "lock").unlink(missing_ok=True)
        raise
    return held


def _not_foreign(path: Path) -> None:
    if (path / "spec.toml").exists() or not path.exists():
        return
    if not path.is_dir() or any(entry.name != "lock" for entry in path.iterdir()):
        raise BrokenRun(f"{path}: is not empty and holds no run: choose another folder")


def _take(path: Path, wanted: str) -> None:
    """Initialises the folder after it is locked."""
    _not_foreign(path)
    known = path / "spec.toml"
    if known.exists():
        there = _guarded(known, lambda file: file.read_text())
        if there != wanted:
            here = tomllib.loads(wanted)
            found = difference(here, _guarded(known, lambda _: tomllib.loads(there)))
            raise BrokenRun(f"{path}: holds another experiment ({found}): choose another folder")
        if (path / "run.json").exists():
            raise FinishedRun(f"{path}: holds a finished run: load it, or choose another folder")
    else:
        write(known, wanted)
    _note_environment(path / "environment.json")
    (path / "trace").mkdir(exist_ok=True)


def _note_environment(file: Path) -> None:
    """Writes the environment of a new run; adds that of a resumed run, if it differs."""
    here = environment()
    if not file.exists():
        write(file, json.dumps(here, indent=1))
        return
    begun = _guarded(file, lambda path: json.loads(path.read_text()))
    resumed = begun.pop("resumed", [])
    if here != begun and here not in resumed:
        write(file, json.dumps({**begun, "resumed": [*resumed, here]}, indent=1))


def add_part(
    path: Path, number: int, columns: Mapping[str, np.ndarray], t: np.ndarray, seeds: list[int]
) -> None:
    """Writes one more part of the trace: the rows of the steps `t`."""
    buffer = io.BytesIO()
    pa = trace.pyarrow()
    pa.parquet.write_table(trace.table(columns, t, seeds), buffer, use_dictionary=False)
    pa.default_memory_pool().release_unused()
    write(_part(path, number), buffer.getvalue())


def _part(path: Path, number: int) -> Path:
    return path / "trace" / f"{number:06d}.parquet"


def checkpoint(
    path: Path, step: int, parts: int, state: Mapping[str, np.ndarray], hosts: int = 1
) -> None:
    """Writes the checkpoint: resume after `step`, with `parts` parts of the trace written.

    The hosts after the first have written their shares of the state; older ones are deleted.
    """
    head = {"step": np.asarray(step), "parts": np.asarray(parts), "hosts": np.asarray(hosts)}
    write(path / "checkpoint.npz", npz({**head, **{f"state/{k}": v for k, v in state.items()}}))
    for share in path.glob("checkpoint-*.npz"):
        if int(share.name.split("-")[1]) < step:
            share.unlink(missing_ok=True)


def checkpoint_share(path: Path, step: int, host: int, state: Mapping[str, np.ndarray]) -> None:
    """Writes a host's share of a state; it counts when the first host has written the checkpoint of this step."""
    write(_share(path, step, host), npz(state))


def _share(path: Path, step: int, host: int) -> Path:
    return path / f"checkpoint-{step}-{host}.npz"


def resume_from(path: Path) -> tuple[int, int, dict[str, np.ndarray]] | None:
    """Returns (step, parts, state) of the last checkpoint, or None."""
    found = path / "checkpoint.npz"
    if not found.exists():
        return None
    content = _read_arrays(found)
    if not {"step", "parts"} <= set(content):
        raise BrokenRun(f"{path}: {found.name} is not a checkpoint: start a new folder")
    state = {k.removeprefix("state/"): v for k, v in content.items() if k.startswith("state/")}
    for host in range(1, int(content.get("hosts", 1))):
        share = _share(path, int(content["step"]), host)
        if not share.exists():
            raise BrokenRun(f"{path}: {share.name} is missing: start a new folder")
        state |= _read_arrays(share)
    parts = int(content["parts"])
    for number in range(parts):
        if not _part(path, number).exists():
            raise BrokenRun(f"{path}: part {number} of the trace is missing: start a new folder")
    return int(content["step"]), parts, state


def finish(
    path: Path, parts: int, model: Mapping[str, np.ndarray], summary: Mapping[str, Any]
) -> None:
    """Joins the first `parts` parts of the trace, writes the model, and writes the checksums to run.json."""
    _join(path, parts)
    write(path / "model.npz", npz(model))
    seals = {name: _digest(path / name) for name in ("spec.toml", "trace.parquet", "model.npz")}
    content = {"format": FORMAT, **summary, "sha256": seals}
    write(path / "run.json", json.dumps(content, indent=1))
    shutil.rmtree(path / "trace")
    for file in (path / "checkpoint.npz", *path.glob("checkpoint-*.npz"), path / "lock"):
        file.unlink(missing_ok=True)


def _join(path: Path, parts: int) -> None:
    """Joins the parts into one file, one part at a time."""
    pa = trace.pyarrow()
    pq = pa.parquet
    files = [_part(path, number) for number in range(parts)]
    temporary = beside(path / "trace.parquet")
    with pq.ParquetWriter(
        temporary, _guarded(files[0], pq.read_schema), use_dictionary=False
    ) as writer:
        for file in files:
            writer.write_table(
                _guarded(file, lambda path: pq.ParquetFile(path).read(use_threads=False))
            )
            pa.default_memory_pool().release_unused()
    move(temporary, path / "trace.parquet")


SEALED = ("spec.toml", "trace.parquet", "model.npz")


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray], trace.File]:
    """Returns (spec, summary, model, trace) of a finished run, after a check of its checksums."""
    if not path.is_dir():
        raise BrokenRun(f"{path}: there is no such run folder")
    if not (path / "run.json").exists():
        unfinished = (path / "spec.toml").exists()
        why = "was not finished: run it again to resume" if unfinished else "is not a run folder"
        inside = [] if unfinished else sorted(each.parent.name for each in path.glob("*/run.json"))
        held = f": it contains the run folders {', '.join(inside[:10])}" if inside else ""
        raise BrokenRun(f"{path}: {why}{held}")
    summary = _guarded(path / "run.json", lambda file: json.loads(file.read_text()))
    found = summary.get("format") if isinstance(summary, dict) else None
    if found != FORMAT:
        raise BrokenRun(
            f"{path}: run.json is of format {found!r}, this version of mainstem reads format {FORMAT}: "
            "load it with the version that wrote it, or run it again"
        )
    seals = summary.get("sha256")
    if not isinstance(seals, dict) or set(seals) != set(SEALED):
        raise BrokenRun(f"{path}: run.json must seal just {', '.join(SEALED)}")
    for name in SEALED:
        if not (path / name).exists():
            raise BrokenRun(f"{path}: {name} is missing")
        if _guarded(path / name, _digest) != seals[name]:
            raise BrokenRun(f"{path}: {name} is not what was written (its checksum differs)")
    spec = _guarded(path / "spec.toml", lambda file: tomllib.loads(file.read_text()))
    model = _read_arrays(path / "model.npz")
    return spec, summary, model, _guarded(path / "trace.parquet", trace.File)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    def read_all(path: Path) -> dict[str, np.ndarray]:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            return {name: content[name] for name in content.files}

    return _guarded(path, read_all)


def _guarded(path: Path, read: Callable[[Path], Any]) -> Any:
    """Returns `read(path)`; any failure becomes a `BrokenRun` with a message of one line."""
    if path.exists() and not path.is_file():  # reading a device or a pipe might never end
        raise BrokenRun(f"{path.parent}: {path.name} is not a file")
    try:
        return read(path)
    except Exception as error:
        raise BrokenRun(f"{path.parent}: {path.name} cannot be read: {first_line(error)}") from None
