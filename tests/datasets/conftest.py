"""A loopback web server, a private cache, and compress(1)."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mainstem.datasets import libsvm, openml, source, uci


class Web:
    """Serves the given bodies at the given paths."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: dict[str, bytes] = {}
        self.declared: dict[str, int | None] = {}
        self.encoding: dict[str, str] = {}

    def serve(self, path: str, body: bytes) -> None:
        """Answers `path` with the complete body."""
        self.bodies[path] = body
        self.declared[path] = len(body)

    def cut(self, path: str, *, declared: bool = True) -> None:
        """Leaves half of the body, under its old declared length or under none."""
        whole = self.bodies[path]
        self.bodies[path] = whole[: len(whole) // 2]
        self.declared[path] = len(whole) if declared else None


@pytest.fixture
def web() -> Iterator[Web]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path not in served.bodies:
                self.send_error(404)
                return
            self.send_response(200)
            if served.declared[self.path] is not None:
                self.send_header("Content-Length", str(served.declared[self.path]))
            if self.path in served.encoding:
                self.send_header("Content-Encoding", served.encoding[self.path])
            self.end_headers()
            self.wfile.write(served.bodies[self.path])

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Web(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def mirrored(web: Web, monkeypatch: pytest.MonkeyPatch) -> Web:
    """Requests to public addresses go to this server, by their path."""

    def download(url: str) -> bytes:
        return source.download(web.url + urlsplit(url).path)

    for module in (uci, openml, libsvm):
        monkeypatch.setattr(module, "download", download)
    return web


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("MAINSTEM_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compress() -> Callable[..., bytes]:
    return _compress


def _compress(text: bytes, *, clear_after: int = 0) -> bytes:
    """What compress(1) writes, with a CLEAR once the table has `clear_after` entries."""
    out = bytearray(b"\x1f\x9d\x90")  # block mode, codes of up to 16 bits
    group: list[int] = []
    table = {bytes([n]): n for n in range(256)}
    free, width, prefix = 257, 9, b""

    def flush(*, padded: bool) -> None:
        bits = sum(code << (n * width) for n, code in enumerate(group))
        size = width if padded and group else -(-len(group) * width // 8)
        out.extend(bits.to_bytes(size, "little"))
        group.clear()

    def emit(code: int) -> None:
        nonlocal width
        group.append(code)
        if len(group) == 8:
            flush(padded=True)
        if free == 1 << width and width < 16:
            flush(padded=True)
            width += 1

    for n in range(len(text)):
        byte = text[n : n + 1]
        if prefix + byte in table:
            prefix += byte
            continue
        emit(table[prefix])
        if free < 1 << 16:
            table[prefix + byte] = free
            free += 1
        if free == clear_after:
            emit(256)
            flush(padded=True)
            table = {bytes([n]): n for n in range(256)}
            free, width = 257, 9
        prefix = byte
    if prefix:
        emit(table[prefix])
    flush(padded=False)
    return bytes(out)
