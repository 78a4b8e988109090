"""Access to the live page: whoever has its token, from the page itself and from no other site."""

import hmac
import ipaddress
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mainstem.disk import PRIVATE, write
from mainstem.errors import MainstemError

LEAST = 16  # letters of a token
OWN = (
    None,
    "same-origin",
    "none",
)  # what Sec-Fetch-Site is for the page itself, or an address typed in
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def token_in(file: Path) -> str:
    """The token in a file, which is written if it does not exist."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write(file, secrets.token_urlsafe(24), PRIVATE)
    found = file.read_text().strip()
    if len(found) < LEAST or not found.isascii() or not found.isprintable():
        raise MainstemError(f"{file}: a token has {LEAST} printable letters and more, in one line")
    return found


class Access:
    """Passes requests on that have the token, in a cookie or as `Authorization: Bearer`, and refuses all others.

    The address with `?token=` sets the cookie. On loopback, the Host must be a name of this machine: or a site
    whose name an attacker lets point here would be taken for the page.
    """

    def __init__(self, app: ASGIApp, token: str, host: str, port: int):
        self._app = app
        self._token = token
        self._cookie = f"mainstem-{port}"  # cookies are the same for all ports of a host
        self._local = is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        request = Request(scope)
        refusal = self._refusal(request)
        if refusal is None and request.url.path == "/" and "token" in request.query_params:
            refusal = RedirectResponse("/", 303)
            refusal.set_cookie(
                self._cookie, self._token, httponly=True, samesite="strict", max_age=2**25
            )
        await (self._app if refusal is None else refusal)(scope, receive, answer)

    def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        origin = request.headers.get("origin")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            foreign = origin is not None and urlsplit(origin).netloc != host
        except ValueError:  # half an IPv6 address
            return PlainTextResponse("Host or Origin is no address.", 403)
        if self._local and not is_loopback(name):
            return PlainTextResponse("This page has no such name.", 403)
        if foreign or request.headers.get("sec-fetch-site") not in OWN:
            return PlainTextResponse("Requests of other sites are refused.", 403)
        given = (
            request.query_params.get("token") if request.url.path == "/" else None,
            request.cookies.get(self._cookie),
            request.headers.get("authorization", "").removeprefix("Bearer "),
        )
        if not any(
            each and hmac.compare_digest(each.encode(), self._token.encode()) for each in given
        ):
            text = "Open the address that `mainstem` printed: it has the token of this page."
            return PlainTextResponse(text, 401)
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
