"""The clients' heartbeats, a few of each client at a time.

A hub subscribes to the next few heartbeats of each client, and twice a second to more of those that have sent any.
In between the server drops what a client sends: a flood of heartbeats is traffic that nobody reads.
"""

from collections.abc import Awaitable, Callable, Collection

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from mainstem.engines.federate.protocol.subjects import Subjects

FEW = 8  # heartbeats of a client between two calls of `renew`


class ClientHeartbeats:
    """Calls `received` with heartbeats of these clients."""

    def __init__(
        self,
        connection: Client,
        subjects: Subjects,
        clients: Collection[str],
        received: Callable[[str, bytes], Awaitable[None]],
    ):
        self._connection = connection
        self._subjects = subjects
        self._clients = set(clients)
        self._received = received
        self._subscriptions: dict[str, Subscription] = {}
        self._replaced: list[Subscription] = []  # by the last call of `renew`
        self._heard: set[str] = set()  # since then

    async def open(self) -> None:
        """Subscribes."""
        for client in self._clients:
            await self._subscribe(client)

    async def follow(self, clients: Collection[str]) -> None:
        """Goes on with other clients."""
        for client in self._clients - set(clients):
            await self._subscriptions.pop(client).unsubscribe()
        came, self._clients = set(clients) - self._clients, set(clients)
        for client in came:
            await self._subscribe(client)

    async def renew(self) -> None:
        """Subscribes anew to those that were heard since the last call.

        The subscriptions that are replaced end with the next call, so that nothing is lost that is on its way.
        """
        replaced, self._replaced = self._replaced, []
        heard, self._heard = self._heard, set()
        for client in heard & self._clients:
            self._replaced.append(self._subscriptions[client])
            await self._subscribe(client)
        for subscription in replaced:
            await subscription.unsubscribe()

    async def _subscribe(self, client: str) -> None:
        async def on_heartbeat(message: Msg) -> None:
            self._heard.add(client)
            if client in self._clients:
                await self._received(client, message.data)

        subscription = await self._connection.subscribe(
            self._subjects.heartbeat(client), cb=on_heartbeat
        )
        await subscription.unsubscribe(limit=FEW)
        self._subscriptions[client] = subscription
