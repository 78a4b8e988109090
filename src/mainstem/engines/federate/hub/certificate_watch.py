"""The watch on the NATS server's certificate: a connection that stays open shows the one that it began with."""

import contextlib
import time
from collections.abc import Awaitable, Callable

from nats.aio.client import Client

from mainstem.engines.federate.transport.connection import FAILED, certificate_end
from mainstem.errors import MainstemError

DAY = 86400.0  # seconds


class CertificateWatch:
    """Follows how long the certificate is valid; `connect` opens another connection, for a moment."""

    def __init__(self, connection: Client, connect: Callable[[], Awaitable[Client]] | None):
        self._end = certificate_end(connection)
        self._connect = connect

    @property
    def days(self) -> float | None:
        """The days that are left; None without TLS."""
        return None if self._end is None else round((self._end - time.time()) / DAY, 1)

    async def renew(self) -> None:
        """Looks at the certificate that the server shows now."""
        if self._end is None or self._connect is None:
            return
        with contextlib.suppress(MainstemError, *FAILED):
            other = await self._connect()
            self._end = certificate_end(other)
            await other.close()
