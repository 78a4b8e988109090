"""The live page on a secured server: what the credentials of a client, an observer and the hub allow."""

import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from mainstem.engines.federate.control import Observer
from tests.dashboard.pages import page_of
from tests.federate.processes import environment
from tests.federate.secured import hubs


def request(page, path, order=None):
    """The answer of a page, or its first event of everything of a run."""
    url = urlsplit(page)
    headers = {"Authorization": f"Bearer {url.query.removeprefix('token=')}"}
    body = None
    if order is not None:
        body = json.dumps(order).encode()
        headers |= {"Content-Type": "application/json", "X-Mainstem": "order"}
    asked = urllib.request.Request(f"http://{url.netloc}{path}", body, headers)
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            if order is not None:
                return json.loads(answer.read())
            while answer.readline() != b"event: whole\n":
                pass
            return json.loads(answer.readline().removeprefix(b"data: "))
    except urllib.error.HTTPError as error:
        with error:
            return json.loads(error.read())


def seen(page):
    return request(page, "/events?run=r"), request(
        page, "/orders", {"run": "r", "order": "pause", "of": ""}
    )


def test_an_observer_looks_and_the_hub_orders(secured_server, tmp_path):
    folder, url = secured_server

    def with_credential(name):
        return {**environment(), "MAINSTEM_CREDENTIALS": str(folder / f"{name}.creds")}

    async def lived():
        async with hubs(secured_server) as (_, found):
            async with await Observer.open(url, folder / "observer.creds", "r") as observer:
                timeline = await observer.timeline("r")
            answers = {}
            for name in ("observer", "hub"):
                with page_of(url, tmp_path / "token", environment=with_credential(name)) as page:
                    answers[name] = await asyncio.to_thread(seen, page), found[0].paused
            return answers, timeline.moments(found[0].status()["time"])

    answers, moments = asyncio.run(lived())
    assert moments
    (shown, answer), paused = answers["observer"]
    assert shown["sites"]["site"] == ["a", "b"]
    assert shown["orders"] == []
    assert "hub's credential" in answer["refused"]
    assert not paused
    (shown, answer), paused = answers["hub"]
    assert {each["order"] for each in shown["orders"]} >= {"pause", "finish", "remove"}
    assert answer == {"done": "pause"}
    assert paused


def test_a_clients_credential_shows_nothing(secured_server, tmp_path):
    folder, url = secured_server

    def refused(*words):
        command = [
            sys.executable,
            "-m",
            "mainstem.cli",
            "dashboard",
            url,
            *words,
            "--listen",
            "127.0.0.1:0",
        ]
        command += ["--token", str(tmp_path / "token"), "--credentials", str(folder / "a.creds")]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, env=environment()
        )

    async def lived():
        async with hubs(secured_server):
            each = ((), ("--run", "r"))
            return await asyncio.gather(*(asyncio.to_thread(refused, *words) for words in each))

    for ended in asyncio.run(lived()):
        assert ended.returncode == 1
        assert ended.stdout == ""
        assert ended.stderr.startswith("mainstem: ")
        assert len(ended.stderr.splitlines()) == 1
