"""Dataset cache: one folder for each dataset, written atomically and verified at every read."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mainstem import disk
from mainstem.datasets import formats
from mainstem.datasets.dataset import Dataset
from mainstem.datasets.named_arrays import Arrays
from mainstem.errors import BadData, DataUnavailable


def root() -> Path:
    """`$MAINSTEM_DATA` if set, otherwise mainstem's folder among the user's caches."""
    named = os.environ.get("MAINSTEM_DATA")
    if named:
        return Path(named).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "mainstem"


def folder(dataset: Dataset) -> Path:
    """The folder of the dataset, which need not exist."""
    return root() / (dataset.folder or dataset.name)


def read(dataset: Dataset) -> Arrays | None:
    """The arrays, verified; None if none are cached; raises `DataUnavailable` if they are wrong."""
    path = folder(dataset) / dataset.file
    if not path.exists():
        return None
    try:
        arrays = _read(dataset)
        fault = dataset.proof(arrays)
    except BadData as error:
        fault = str(error)
    if fault:
        raise DataUnavailable(
            f"{dataset.name}: {path} is not what it should be ({fault}); "
            f"delete the folder {folder(dataset)} and get it again"
        )
    return arrays


@contextmanager
def staging(dataset: Dataset) -> Iterator[Path]:
    """A private folder beside the cached ones, removed afterwards in any case.

    It is created before the download, so that an unwritable cache is reported at once.
    """
    try:
        root().mkdir(parents=True, exist_ok=True)
        private = Path(tempfile.mkdtemp(prefix=f".{dataset.name}-", dir=root()))
    except OSError as error:
        raise DataUnavailable(
            f"{dataset.name}: the cache folder {root()} cannot be written ({error.strerror}); "
            "set MAINSTEM_DATA to one that can"
        ) from error
    try:
        yield private
    finally:
        shutil.rmtree(private, ignore_errors=True)


def publish(dataset: Dataset, arrays: Arrays, provenance: str, staged: Path) -> None:
    """Writes in the staged folder, then moves the files, once safely on disk, to where `read` expects them.

    The data is moved last and by one rename: a reader sees all of it or none. If there are several files, the
    one that `read` checks for is moved last.
    """
    note = staged / "PROVENANCE.txt"
    parts = _by_file(dataset, arrays)
    try:
        note.write_text(provenance + "\n", encoding="utf-8")
        for name, part in parts.items():
            formats.write(staged / name, part)
        folder(dataset).mkdir(exist_ok=True)
        for written in (note, *(staged / name for name in parts)):
            disk.move(written, folder(dataset) / written.name)
        disk.sync(folder(dataset))
    except OSError as error:
        raise DataUnavailable(
            f"{dataset.name}: could not be written to {root()}: {error}"
        ) from error


def _read(dataset: Dataset) -> Arrays:
    arrays = dict(formats.read(folder(dataset) / dataset.file))
    for prefix, name in dataset.beside.items():
        part = formats.read(folder(dataset) / name)
        arrays.update({f"{prefix}/{array}": part[array] for array in part})
    return arrays


def _by_file(dataset: Dataset, arrays: Arrays) -> dict[str, Arrays]:
    """The arrays of each file, the main file last."""
    main, parts = dict(arrays), {}
    for prefix, file in dataset.beside.items():
        own = [name for name in main if name.startswith(f"{prefix}/")]
        parts[file] = {name.removeprefix(f"{prefix}/"): main.pop(name) for name in own}
    return {**parts, dataset.file: main}
