"""What the runs on a broker say of themselves, and orders to them."""

import contextlib
import json
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors

from mainstem.engines.federate import broker
from mainstem.engines.federate.names import Names, token
from mainstem.errors import MainstemError


async def look(url: str, credentials: str | Path | None = None) -> list[dict[str, Any]]:
    """The latest status of every run on the broker."""
    connection = await broker.connect(url, credentials)
    try:
        js = connection.jetstream(timeout=5)
        found = []
        with broker.answering():
            for run in await broker.runs(connection):
                names = Names(run)
                with contextlib.suppress(nats.js.errors.NotFoundError):
                    told = await js.get_msg(names.broadcasts, subject=names.status, direct=True)
                    found.append(json.loads(told.data or b"{}"))
        return found
    finally:
        await connection.close()


async def order(
    url: str, run: str, what: str, credentials: str | Path | None = None
) -> dict[str, Any]:
    """Tell a run's hub to pause, resume, finish or take a candidate; its status then."""
    names = Names(token("order", "run", run))
    connection = await broker.connect(url, credentials)
    try:
        answer = json.loads(
            (await connection.request(names.control, what.encode(), timeout=5)).data
        )
        if "refused" in answer:
            raise MainstemError(f"{run}: {answer['refused']}")
        return dict(answer)
    except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
        raise MainstemError(
            f"{run}: no hub answers on this broker, or not to this credential"
        ) from None
    finally:
        await connection.close()
