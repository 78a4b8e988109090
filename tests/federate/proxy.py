"""A TCP proxy before a NATS server that delays, throttles, cuts and half-opens connections."""

import contextlib
import socket
import threading
import time

BLOCK = 4096


class Proxy:
    """Forwards connections of the loopback interface to a port, in threads."""

    def __init__(self, port: int):
        self._target = port
        self.delay = 0.0  # seconds before each block is passed on
        self.rate = float("inf")  # bytes per second
        self.withholds = False  # whether what the server says is withheld
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(each)
            for source, sink, down in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._pass, args=(source, sink, down), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, down: bool) -> None:
        try:
            while block := source.recv(BLOCK):
                time.sleep(self.delay + len(block) / self.rate)
                if not (down and self.withholds):
                    sink.sendall(block)
        except OSError:
            pass
        for each in (source, sink):
            _end(each)

    def cut(self) -> None:
        """Ends all connections at once."""
        ended, self._sockets = self._sockets, []
        for each in ended:
            _end(each)

    def stop(self) -> None:
        _end(self._listener)
        self.cut()


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
