"""Atomic file writes, and locks on folders."""

import io
import os
from collections.abc import Mapping
from pathlib import Path

import filelock
import numpy as np

from mainstem.errors import BrokenRun

PRIVATE = 0o600  # a file that only its user may read


def private_folder(path: Path) -> Path:
    """Makes a folder that only its user may enter, if there is none; one that is there keeps its permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def write(path: Path, data: bytes | str, mode: int = 0o666, durable: bool = True) -> Path:
    """Writes `data` to `path` atomically. The file never has more permissions than `mode`.

    If it is not `durable`, it survives a kill of the process, but a power cut may bring back the older one.
    """
    temporary = beside(path)
    temporary.unlink(missing_ok=True)
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
    except OSError as error:  # a full disk does not say of which file
        raise OSError(error.errno, error.strerror, str(path)) from None
    return move(temporary, path) if durable else temporary.replace(path)


def beside(path: Path) -> Path:
    """The path at which a file is written before it is moved to `path`."""
    return path.with_name(path.name + ".new")


def move(written: Path, path: Path) -> Path:
    """Moves the file `written` to `path` in one rename, after its content is on disk."""
    sync(written)
    return written.replace(path)


def sync(path: Path) -> None:
    """Flushes a file's content, or a folder's list of files, to disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(folder: Path) -> filelock.BaseFileLock:
    """Locks the folder for this process until `release` is called, or the process ends."""
    held = filelock.FileLock(folder / "lock", thread_local=False)
    try:
        held.acquire(blocking=False)
    except filelock.Timeout:
        raise BrokenRun(f"{folder}: another process is running it: wait, or end that one") from None
    return held


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Named arrays as the bytes of an .npz file."""
    buffer = io.BytesIO()
    assert not any(np.asarray(array).dtype.hasobject for array in arrays.values())  # no pickles
    np.savez(buffer, **arrays)  # type: ignore[arg-type] # NumPy before 2.2 has no `allow_pickle`
    return buffer.getvalue()
