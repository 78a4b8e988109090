"""A run document comes from elsewhere: nothing large is built from it, and it names no file of this machine."""

import copy
import json
import random
import time

import pytest

from mainstem.engines.federate.protocol.run_document import decode, encode, parse
from mainstem.engines.federate.protocol.versions import versions
from mainstem.errors import MainstemError
from tests.federate.in_process import run_content

FINE = run_content({"name": "ofediq", "step": 0.1, "rate": 0.5, "levels": 3}, clients=["a", "b"])


def sent(content):
    return json.dumps({**versions({}), **content}).encode()


def changed(*way, to):
    content = copy.deepcopy(FINE)
    place = content
    for name in way[:-1]:
        place = place[name]
    place[way[-1]] = to
    return content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (changed("federate", "clients", to=10**9), "clients must be an integer .* at most 100000"),
        (changed("problem", "features", to=10**9), "parameters, at most"),
        (changed("problem", "features", to=10**40), "parameters, at most"),
        (
            changed(
                "algorithm", "collect", to={"name": "csv", "path": "/etc/passwd", "target": "x"}
            ),
            "unknown name 'csv'",
        ),
        (
            changed("problem", to={"name": "batched", "of": {"name": "digits", "clients": 2}}),
            "unknown name 'digits'",
        ),
        (changed("algorithm", "step", to={"name": "by_key"}), "unknown name 'by_key'"),
        (changed("federate", "steps", to=10**12), "steps must be"),
        (changed("federate", "pending", to=10**9), "pending must be"),
    ],
)
def test_what_is_too_large_or_elsewhere_is_refused_at_once(content, words):
    begin = time.monotonic()
    with pytest.raises(MainstemError, match=words):
        decode(sent(content), "run")
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("depth", [100, 10**5])
def test_nesting_is_limited(depth):
    stated = json.dumps(versions({}))[:-1]
    data = f'{stated}, "problem": '.encode() + b'{"name": "batched", "of": ' * depth
    with pytest.raises(MainstemError, match="run: its document cannot be read"):
        decode(data + b"1" + b"}" * (depth + 1), "run")


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"3", b"null", b"{", b"\xff\xfe", b'{"protocol": []}']
)
def test_what_is_no_document_is_refused(data):
    with pytest.raises(MainstemError):
        decode(data, "run")


def _mutated(content, draw):
    """The document with one entry replaced, removed or added."""
    content = copy.deepcopy(content)
    place, way = content, []
    while True:
        key = draw.choice(list(place))
        way.append(key)
        if not isinstance(place[key], dict) or not place[key] or draw.random() < 0.3:
            break
        place = place[key]
    junk = [None, -1, 0, 2**31, 1e308, 10**30, True, "x", "", [], {}, [[]], {"name": "half"}]
    junk += [{"name": "csv"}, float("nan"), float("inf"), "hashed", ["a", "a"], {"name": []}]
    action = draw.randrange(3)
    if action == 0:
        del place[key]
    elif action == 1:
        place[key] = draw.choice(junk)
    else:
        place[draw.choice(["name", "of", "codec", "x", "clients", "step"])] = draw.choice(junk)
    return content


@pytest.mark.parametrize("count", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_changed_documents_are_read_or_refused(count):
    draw, refused = random.Random(0), 0
    fine = json.loads(encode(parse(FINE)))
    for _ in range(count):
        content = _mutated(fine, draw)
        begin = time.monotonic()
        try:
            decode(json.dumps(content).encode(), "run")
        except MainstemError:
            refused += 1
        assert time.monotonic() - begin < 10, content
    assert count / 4 < refused < count
