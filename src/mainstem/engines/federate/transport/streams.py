"""Creates the JetStream streams of a run, and reads its stored broadcasts."""

import contextlib
from collections.abc import AsyncIterator

import nats.js.errors
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, StreamConfig

from mainstem.engines.federate.protocol.chunking import Reassembler
from mainstem.engines.federate.protocol.messages import Broadcast, Refused
from mainstem.engines.federate.protocol.run_document import RunDocument
from mainstem.errors import BrokenRun

LEAST_ROOM = 64  # messages
TIMEOUT = 3.0  # seconds to wait for a stored broadcast
EXISTS = 10058  # the server's error code for a stream that is there, and differs


def room_for(uploads: int, chunks: int) -> int:
    """How many messages of one client the upload stream holds, if so many uploads of `chunks` may be pending."""
    return max(LEAST_ROOM, 4 * uploads * chunks)


async def create_streams(
    js: JetStreamContext, document: RunDocument, room: int, most: int, replicas: int
) -> None:
    """Creates or changes the streams of a run: room for so many messages of a client, of `most` bytes each."""
    subjects, rules = document.subjects, document.rules
    for config in (
        StreamConfig(
            name=subjects.upload_stream,
            subjects=[subjects.upload("*")],
            max_msgs_per_subject=room,  # it refuses more
            discard=DiscardPolicy.NEW,
            discard_new_per_subject=True,
            max_msg_size=most,
            num_replicas=replicas,
        ),
        StreamConfig(
            name=subjects.broadcast_stream,
            subjects=[
                subjects.broadcast("*"),
                subjects.candidate("*"),
                subjects.document,
                subjects.status,
            ],
            max_msgs_per_subject=rules.staleness if document.algorithm.collect.based else 1,
            allow_direct=True,
            num_replicas=replicas,
        ),
        StreamConfig(
            name=subjects.timeline_stream,
            subjects=[subjects.moment("*", "*")],
            max_msgs_per_subject=1,
            allow_direct=True,
            num_replicas=replicas,
        ),
    ):
        try:
            await _create(js, config)
        except nats.js.errors.BadRequestError as error:
            raise BrokenRun(f"{subjects.run}: cannot be set up: {error.description}") from None


async def _create(js: JetStreamContext, config: StreamConfig) -> None:
    """Creates a stream; one that is there, and differs, is changed."""
    try:
        await js.add_stream(config)
    except nats.js.errors.BadRequestError as error:
        if error.err_code != EXISTS:
            raise
        await js.update_stream(config)


async def stored_broadcasts(
    js: JetStreamContext, document: RunDocument
) -> AsyncIterator[Broadcast]:
    """The broadcasts that the server still has, oldest first."""
    subjects, reassembler, remaining = (
        document.subjects,
        Reassembler(document.most_broadcast_bytes),
        1,
    )
    subscription = await js.subscribe(
        subjects.broadcast("*"), stream=subjects.broadcast_stream, ordered_consumer=True
    )
    try:
        while remaining:
            message = await subscription.next_msg(TIMEOUT)
            remaining = message.metadata.num_pending
            with contextlib.suppress(Refused):
                data = reassembler.add(message.data)
                if data is not None:
                    yield document.read_broadcast(data)
    except TimeoutError:
        return  # the hub was killed before its first broadcast
    finally:
        await subscription.unsubscribe()
