"""Files that survive a kill, and folders that one process uses at a time."""

import fcntl
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from mainstem.errors import BrokenRun


def write(path: Path, data: bytes | str, mode: int = 0o666) -> Path:
    """`data` into `path`, all or nothing, and never readable by more than `mode` allows."""
    temporary = beside(path)
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
    return move(temporary, path)


def beside(path: Path) -> Path:
    """Where a file is written before it is moved to `path`."""
    return path.with_name(path.name + ".new")


def move(written: Path, path: Path) -> Path:
    """The written file to `path`, in one rename, once it is safely on disk."""
    sync(written)
    return written.replace(path)


def sync(path: Path) -> None:
    """Returns when a file's content, or a folder's list of files, is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(folder: Path) -> BinaryIO:
    """Keeps the folder for this process until what is returned is closed."""
    file = (folder / "lock").open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise BrokenRun(f"{folder}: another process is running it: wait, or end that one") from None
    return file


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Named arrays as the bytes of an .npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()
