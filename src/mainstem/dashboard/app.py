"""The live page's application: the page, its events and its orders."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from mainstem.dashboard.access import Access
from mainstem.dashboard.page import POLICY, files, page
from mainstem.dashboard.source import ORDERS, Source
from mainstem.errors import MainstemError
from mainstem.report import finite_json

log = logging.getLogger("mainstem")
SECOND = 1.0
MOST = 10_000  # bytes of an order
SITES = 8  # that have lines of their own, at most
QUIET = 15.0  # seconds after which a comment shows that the connection stands
KINDS = {"js": "text/javascript", "css": "text/css"}


class Pages:
    """Answers of the live page to a browser."""

    def __init__(self, source: Source):
        self._source = source
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """The source has looked."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def page(self, request: Request) -> Response:
        """The page."""
        return HTMLResponse(page(self._source.about), headers={"Content-Security-Policy": POLICY})

    async def file(self, request: Request) -> Response:
        """A script or a style."""
        name = request.path_params["name"]
        found = files().get(name)
        if found is None:
            return Response("there is no such file", 404)
        return Response(found, media_type=KINDS[name.rpartition(".")[2]])

    async def events(self, request: Request) -> Response:
        """Server-sent events: the runs, and one of them."""
        run = request.query_params.get("run", "")
        sites = request.query_params.getlist("site")[:SITES]
        return StreamingResponse(self._events(run, sites), media_type="text/event-stream")

    async def _events(self, run: str, sites: list[str]) -> AsyncIterator[str]:
        source, known = self._source, None
        seen: float | None = None  # the revision of the run that the page has
        while True:
            changed = self._changed
            rows = source.rows()
            if (rows, source.problem) != known:
                known = rows, source.problem
                yield _event("runs", {"runs": rows, "problem": source.problem})
            if run:
                found = (
                    source.whole(run, sites) if seen is None else source.latest(run, sites, seen)
                )
                if found is not None:
                    seen = found["revision"]
                    yield _event("latest" if "point" in found else "whole", {"run": run, **found})
                elif not any(row["run"] == run for row in rows):
                    seen = None
            try:
                await asyncio.wait_for(changed.wait(), QUIET)
            except TimeoutError:
                yield ": quiet\n\n"

    async def order(self, request: Request) -> Response:
        """Sends an order to a run."""
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST:
                return JSONResponse({"refused": "this is no order"}, 413)
        wanted = request.headers.get("content-type") == "application/json"
        if not wanted or request.headers.get("x-mainstem") != "order":
            return JSONResponse({"refused": "orders are given on the page"}, 415)
        try:
            found = json.loads(body)
            run, name, of = (str(found[key]) for key in ("run", "order", "of"))
            if name not in ORDERS:
                raise ValueError(name)
        except (ValueError, KeyError, TypeError, RecursionError):
            return JSONResponse({"refused": "this is no order"}, 400)
        try:
            await self._source.order(run, name, of)
        except (MainstemError, ValueError) as error:
            return JSONResponse({"refused": str(error)}, 409)
        return JSONResponse({"done": name})


def _event(kind: str, content: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {finite_json.dumps(content)}\n\n"


async def _follow(source: Source, pages: Pages) -> None:
    """Follows the source. A fault of its own is shown on the page and in the log, and it begins anew."""
    while True:
        try:
            await source.follow(pages.changed)
        except Exception as error:
            log.exception("the live page cannot read %s", source.about)
            source.problem = f"{source.about} cannot be read: {error}"
            pages.changed()
            await asyncio.sleep(SECOND)


def application(source: Source, token: str, host: str, port: int) -> Starlette:
    """The application that shows a source to those who have the token."""
    pages = Pages(source)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        following = asyncio.create_task(_follow(source, pages))
        try:
            yield
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following

    routes = [
        Route("/", pages.page),
        Route("/events", pages.events),
        Route("/orders", pages.order, methods=["POST"]),
        Route("/{name}", pages.file),
    ]
    access = Middleware(Access, token=token, host=host, port=port)
    return Starlette(routes=routes, middleware=[access], lifespan=lifespan)
