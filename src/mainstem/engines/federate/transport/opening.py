"""What is opened by `await`, or by `async with`, which also closes it."""

from collections.abc import Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar


class Closes(Protocol):
    """Something that can be closed."""

    async def close(self) -> None:
        """Closes it."""


Opened = TypeVar("Opened", bound=Closes)


class Opening(Generic[Opened]):
    """Both ``it = await opening`` and ``async with opening as it`` open it; once."""

    def __init__(self, work: Coroutine[Any, Any, Opened]):
        self._work = work
        self._opened: Opened | None = None

    def __await__(self) -> Generator[Any, None, Opened]:
        return self._work.__await__()

    async def __aenter__(self) -> Opened:
        self._opened = await self._work
        return self._opened

    async def __aexit__(self, *error: object) -> None:
        if self._opened is not None:
            await self._opened.close()
