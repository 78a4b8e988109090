"""A run's streams on the broker: the log of uploads, and what the hub says."""

import contextlib
from collections.abc import AsyncIterator

import nats.js.errors
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, StreamConfig

from mainstem.engines.federate.charter import Charter
from mainstem.engines.federate.pieces import Joiner
from mainstem.engines.federate.wire import LARGEST, Broadcast, Refused, read_broadcast
from mainstem.errors import BrokenRun

HELD = 64  # messages of one client that the broker keeps at least
RECALL = 3.0  # seconds in which a broadcast of before must come


async def made(js: JetStreamContext, charter: Charter, pieces: int, replicas: int) -> None:
    """Make them, or find them; an upload has so many `pieces`."""
    names = charter.names
    for config in (
        StreamConfig(
            name=names.uploads,
            subjects=[names.up("*")],
            max_msgs_per_subject=max(HELD, 4 * charter.rules.pending * pieces),
            discard=DiscardPolicy.OLD,
            num_replicas=replicas,
        ),
        StreamConfig(
            name=names.broadcasts,
            subjects=[names.model("*"), names.candidate("*"), names.spec, names.status],
            max_msgs_per_subject=charter.rules.staleness if charter.algorithm.collect.based else 1,
            allow_direct=True,
            num_replicas=replicas,
        ),
    ):
        try:
            await js.add_stream(config)
        except nats.js.errors.BadRequestError as error:
            raise BrokenRun(f"{names.run}: cannot be set up: {error.description}") from None


async def recalled(js: JetStreamContext, charter: Charter) -> AsyncIterator[Broadcast]:
    """The broadcasts that the broker still has, oldest first."""
    names, joiner, left = charter.names, Joiner(LARGEST), 1
    said = await js.subscribe(names.model("*"), stream=names.broadcasts, ordered_consumer=True)
    try:
        while left:
            message = await said.next_msg(RECALL)
            left = message.metadata.num_pending
            with contextlib.suppress(Refused):
                data = joiner.add(message.data)
                if data is not None:
                    yield read_broadcast(data)
    except TimeoutError:
        return  # a hub that was killed before it said anything
    finally:
        await said.unsubscribe()
