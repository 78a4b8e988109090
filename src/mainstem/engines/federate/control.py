"""Reads the status of runs and sends commands to their hubs. The hub answers in hub/hub.py."""

import contextlib
import json
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors

from mainstem.engines.federate.protocol.subjects import Subjects, token
from mainstem.engines.federate.transport.connection import answering, connect, runs
from mainstem.errors import MainstemError


async def statuses(url: str, credentials: str | Path | None = None) -> list[dict[str, Any]]:
    """The latest status of every run on the server."""
    connection = await connect(url, credentials)
    try:
        js = connection.jetstream(timeout=5)
        found = []
        with answering():
            for run in await runs(connection):
                subjects = Subjects(run)
                with contextlib.suppress(nats.js.errors.NotFoundError):
                    found_status = await js.get_msg(
                        subjects.broadcast_stream, subject=subjects.status, direct=True
                    )
                    found.append(json.loads(found_status.data or b"{}"))
        return found
    finally:
        await connection.close()


async def command(
    url: str, run: str, action: str, credentials: str | Path | None = None
) -> dict[str, Any]:
    """Sends pause, resume, back, finish or candidate to the hub of a run. Returns its status."""
    subjects = Subjects(token("command", "run", run))
    connection = await connect(url, credentials)
    try:
        answer = json.loads(
            (await connection.request(subjects.control, action.encode(), timeout=5)).data
        )
        if "refused" in answer:
            raise MainstemError(f"{run}: {answer['refused']}")
        return dict(answer)
    except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
        raise MainstemError(
            f"{run}: no hub answers on this NATS server, or not to this credential"
        ) from None
    finally:
        await connection.close()
