"""The clients' heartbeats: a stream in the server's memory that keeps the newest few of each client.

The hub reads it a few times a second, so a client that floods it with heartbeats costs no more than one that does
not: the server replaces the older ones, and refuses large ones.
"""

import nats.errors
import nats.js.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StorageType, StreamConfig

from mainstem.engines.federate.protocol.heartbeats import MOST_BYTES
from mainstem.engines.federate.protocol.subjects import Subjects

MAX_AGE = 15.0  # seconds for which the server keeps a heartbeat
KEPT = 4  # heartbeats of a client
WAIT = 0.2  # seconds in which heartbeats are collected
FORGOTTEN = 60.0  # seconds after which the server forgets the place of a hub that does not read


class ClientHeartbeats:
    """Reads the heartbeats of a run."""

    def __init__(self, js: JetStreamContext, subjects: Subjects, clients: int, replicas: int):
        self._js = js
        self._subjects = subjects
        self._most = KEPT * clients
        self._replicas = replicas
        self._subscription: JetStreamContext.PullSubscription | None = None

    async def newest(self) -> list[Msg]:
        """Heartbeats that came since the last call or come in a moment, a few of each client at most."""
        try:
            if self._subscription is None:
                self._subscription = await self._open()
            return await self._subscription.fetch(self._most, timeout=WAIT)
        except TimeoutError:
            return []
        except (nats.errors.Error, nats.js.errors.Error):  # the server was restarted
            self._subscription = None
            return []

    async def _open(self) -> JetStreamContext.PullSubscription:
        await self._js.add_stream(
            StreamConfig(
                name=self._subjects.heartbeat_stream,
                subjects=[self._subjects.heartbeat("*")],
                storage=StorageType.MEMORY,
                max_msgs_per_subject=KEPT,
                max_msg_size=MOST_BYTES,
                max_age=MAX_AGE,
                num_replicas=self._replicas,
            )
        )
        config = ConsumerConfig(
            ack_policy=AckPolicy.NONE,
            deliver_policy=DeliverPolicy.LAST_PER_SUBJECT,
            inactive_threshold=FORGOTTEN,
        )
        return await self._js.pull_subscribe(
            self._subjects.heartbeat("*"), stream=self._subjects.heartbeat_stream, config=config
        )
