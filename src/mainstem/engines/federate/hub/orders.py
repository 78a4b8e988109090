"""Orders of operators: each is a message to the hub, and is answered with the status or with a refusal."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from mainstem.engines.federate import event_log
from mainstem.engines.federate.protocol.changes import Change, changed
from mainstem.errors import MainstemError

if TYPE_CHECKING:
    from mainstem.engines.federate.hub.hub import Hub


async def execute(hub: "Hub", data: bytes) -> dict[str, Any]:
    """Executes an order that came as a message: JSON with its name and what else it needs. Returns the answer."""
    try:
        found = dict(json.loads(data))
        name = found.pop("order")
    except (TypeError, ValueError, KeyError, RecursionError):
        return {"refused": "this is not an order"}
    return await obey(hub, name, found)


async def obey(hub: "Hub", name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Executes an order. Returns the status, or why it is refused."""
    if name not in ORDERS:
        return {"refused": f"there is no order {name!r}: one of {', '.join(ORDERS)}"}
    run, given = hub.document.rules.run, dict(arguments)
    words = " ".join(
        [f"order: {name}", *(f"{key}={value}" for key, value in given.items() if value)]
    )
    event_log.warning("order", words, run=run, order=name, given=given)
    try:
        await ORDERS[name](hub, **given)
        return hub.status()
    except MainstemError as error:
        why = str(error).removeprefix(f"{run}: ")
    except (TypeError, ValueError, AttributeError) as error:
        why = f"the order {name} cannot be read: {error}"
    event_log.warning("order_refused", f"the order {name} is refused: {why}", run=run, order=name)
    return {"refused": why}


async def _pause(hub: "Hub") -> None:
    hub.paused = True


async def _resume(hub: "Hub") -> None:
    hub.resume()


async def _back(hub: "Hub", merge: int | None = None) -> None:
    await hub.go_back(merge)


async def _finish(hub: "Hub") -> None:
    hub.finish()


async def _candidate(hub: "Hub") -> None:
    if hub.document.algorithm.personal:
        raise MainstemError(
            "a candidate must be a whole model, and the hub has the shared part only"
        )
    await hub.publish_candidate()


async def _forgive(hub: "Hub", client: str) -> None:
    hub.forgive(client)


async def _snapshot(hub: "Hub") -> None:
    hub.write_model()


async def _change(hub: "Hub", **asked: Any) -> None:
    change = Change(**asked)
    await hub.change(changed(hub.document, change), change)


ORDERS: dict[str, Callable[..., Awaitable[None]]] = {
    "pause": _pause,
    "resume": _resume,
    "back": _back,
    "finish": _finish,
    "candidate": _candidate,
    "forgive": _forgive,
    "snapshot": _snapshot,
    "change": _change,
}
