"""Access to the live page, over HTTP: what has no token, or comes from another site, gets no data and no order."""

import asyncio
import contextlib
import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from starlette.responses import PlainTextResponse

from mainstem.check import host_and_port
from mainstem.dashboard.access import Access, token_in
from mainstem.errors import MainstemError
from tests.dashboard.pages import page_of

ORDER = json.dumps({"run": "a", "order": "pause", "of": ""})
HEADERS = {"Content-Type": "application/json", "X-Mainstem": "order"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """(HOST:PORT, token) of a page of an empty folder."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "runs").mkdir()
    with page_of(str(folder / "runs"), folder / "token") as page:
        url = urlsplit(page)
        yield url.netloc, url.query.removeprefix("token=")


def asked(served, path="/", method="GET", body=None, token=True, **headers):
    """The code, the headers and the beginning of an answer."""
    place, secret = served
    with contextlib.closing(http.client.HTTPConnection(place, timeout=20)) as connection:
        known = {"Authorization": f"Bearer {secret}"} if token else {}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, known | given)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read1(4000).decode()


@pytest.mark.parametrize("path", ["/", "/live.js", "/events?run=a", "/none"])
def test_nothing_without_the_token(served, path):
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "mainstem=wrong"}):
        code, _, text = asked(served, path, token=False, **headers)
        assert code == 401
        assert "Open the address" in text
    assert asked(served, "/?token=wrong", token=False)[0] == 401
    assert (
        asked(served, f"/live.js?token={served[1]}", token=False)[0] == 401
    )  # only the page's own address
    assert asked(served, "/orders", "POST", ORDER, token=False, **HEADERS)[0] == 401


def test_the_address_with_the_token_gives_a_cookie_that_is_enough(served):
    code, headers, _ = asked(served, f"/?token={served[1]}", token=False)
    assert (code, headers["Location"]) == (303, "/")
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    code, headers, text = asked(served, token=False, Cookie=cookie.partition(";")[0])
    assert code == 200
    assert "live.js" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Host": "evil.example"},
        {"Host": "["},
        {"Host": "[::1"},
        {"Origin": "http://["},
    ],
)
def test_nothing_for_another_site_also_with_the_token(served, headers):
    for method, path in (
        ("GET", "/"),
        ("GET", "/events"),
        ("POST", "/orders"),
        ("OPTIONS", "/orders"),
    ):
        code, found, _ = asked(served, path, method, ORDER, **HEADERS, **headers)
        assert code == 403
        assert "Access-Control-Allow-Origin" not in found


@pytest.mark.parametrize(("listens", "code"), [("127.0.0.1", 403), ("10.0.0.5", 200)])
def test_a_proxy_that_passes_the_host_on_needs_a_page_off_loopback(listens, code):
    """docs/dashboard.md says so."""
    app = Access(PlainTextResponse("the page"), "a token of a page", listens, 8080)
    headers = {"host": "page.example", "origin": "https://page.example"}
    headers |= {"authorization": "Bearer a token of a page", "sec-fetch-site": "same-origin"}
    scope = {"type": "http", "method": "POST", "path": "/orders", "query_string": b""}
    scope["headers"] = [(name.encode(), text.encode()) for name, text in headers.items()]
    answers = []

    async def answered(message):
        answers.append(message)

    asyncio.run(app(scope, None, answered))
    assert answers[0]["status"] == code


def test_an_order_needs_what_only_the_page_sends(served):
    def ordered(body, **headers):
        return asked(served, "/orders", "POST", body, **headers)

    assert (
        ordered(ORDER, Content_Type="text/plain", X_Mainstem="order")[0] == 415
    )  # what a form can send
    assert ordered(ORDER, Content_Type="application/json")[0] == 415
    for body in (
        "",
        "[]",
        "null",
        '{"run": "a"}',
        '{"run": "a", "order": "delete", "of": ""}',
        "[" * 9000,
    ):
        assert ordered(body, **HEADERS)[0] == 400
    assert ordered("x" * 20_000, **HEADERS)[0] == 413
    code, _, text = ordered(ORDER, **HEADERS, Origin=f"http://{served[0]}")
    assert code == 409
    assert "takes no orders" in text


def test_events_come_at_once(served):
    code, headers, text = asked(served, "/events")
    assert code == 200
    assert headers["Content-Type"].startswith("text/event-stream")
    assert text.startswith('event: runs\ndata: {"runs": []')


def test_a_token_is_made_once_and_must_be_long(tmp_path):
    file = tmp_path / "state" / "token"
    token = token_in(file)
    assert len(token) >= 32
    assert token_in(file) == token
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("short")
    with pytest.raises(MainstemError, match="16 printable letters"):
        token_in(file)


@pytest.mark.parametrize("given", ["8080", "localhost:", ":1", "a:99999", "a:b"])
def test_an_address_that_is_none_is_refused(given):
    with pytest.raises(MainstemError, match="must be HOST:PORT"):
        host_and_port("--listen", given)
