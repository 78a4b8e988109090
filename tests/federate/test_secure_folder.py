"""The folder that `secure` writes: what is private, what is added, what is never overwritten."""

import asyncio
import json
import signal
import stat
import subprocess
import sys
import time

import pytest
from cryptography import x509

from mainstem.engines.federate.security import credentials
from mainstem.engines.federate.security.setup import secure
from mainstem.engines.federate.transport import connection as connections
from mainstem.errors import MainstemError
from tests.federate.secured import WAIT, free_port, serving, turned_away


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_what_is_private_is_private(tmp_path):
    folder = tmp_path / "here" / "setup"
    paths = secure(folder, clients=["a", "b"])
    assert sorted(path.name for path in paths) == sorted(contents(folder))
    assert {path.parent for path in paths} == {folder}
    assert list(folder.parent.iterdir()) == [folder]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}
    secret = {name for name in modes if name.endswith((".creds", ".key"))}
    assert secret == {"ca.key", "server.key", "hub.creds", "observer.creds", "a.creds", "b.creds"}
    assert {modes[name] for name in secret} == {0o600}
    seeds = [credentials.seed_in(folder / f"{n}.creds") for n in ("hub", "observer", "a", "b")]
    assert len(set(seeds)) == 4
    for name in set(modes) - secret:
        text = (folder / name).read_text()
        assert "PRIVATE KEY" not in text
        assert not any(seed in text for seed in seeds)


async def known(url, path, name):
    """A connection, as soon as the server knows this user."""
    end = time.monotonic() + WAIT
    while True:
        try:
            return await connections.connect(url, path, name=name)
        except MainstemError:
            if time.monotonic() > end:
                raise


def test_a_client_that_is_added_joins_the_others(tmp_path):
    folder, port = tmp_path / "setup", free_port()
    secure(folder, clients=["a"], runs=["r"], port=port)
    before = contents(folder)
    url = f"tls://localhost:{port}"

    async def main(server):
        a = await connections.connect(url, folder / "a.creds", name="a")
        paths = secure(folder, clients=["b"], runs=["r"])
        assert {path.name for path in paths} == {"b.creds", "server.conf", "setup.json"}
        with pytest.raises(MainstemError) as unknown:
            await connections.connect(url, folder / "b.creds", name="b")
        assert turned_away(str(unknown.value))
        server.send_signal(signal.SIGHUP)
        b = await known(url, folder / "b.creds", "b")
        await a.flush()
        assert a.stats["reconnects"] == 0
        await a.close()
        await b.close()

    with serving(folder, port, "-c", "server.conf") as server:
        asyncio.run(main(server))
    after = contents(folder)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"server.conf", "setup.json"}
    for name in changed:
        assert credentials.public(credentials.seed_in(folder / "a.creds")) in after[name].decode()


def test_what_is_there_is_never_overwritten(tmp_path):
    folder = tmp_path / "setup"
    secure(folder, clients=["a", "b"])
    before = contents(folder)
    for clients in (["a", "b"], ["b"]):
        with pytest.raises(MainstemError, match="left alone"):
            secure(folder, clients=clients)
    assert contents(folder) == before
    full = tmp_path / "full"
    full.mkdir()
    (full / "ca.key").write_text("mine")
    with pytest.raises(MainstemError, match="holds no set-up"):
        secure(full, clients=["a"])
    assert contents(full) == {"ca.key": b"mine"}


def test_an_interrupted_addition_is_taken_up(tmp_path, monkeypatch):
    folder = tmp_path / "setup"
    secure(folder, clients=["a"])
    with monkeypatch.context() as patch:
        patch.setattr("mainstem.engines.federate.security.setup.accounts", None)
        with pytest.raises(TypeError):
            secure(folder, clients=["b"])
    left = (folder / "b.creds").read_bytes()
    secure(folder, clients=["b"])
    assert (folder / "b.creds").read_bytes() == left
    assert (
        credentials.public(credentials.seed_in(folder / "b.creds"))
        in (folder / "server.conf").read_text()
    )


def test_new_hosts_are_signed_with_the_same_authority(tmp_path):
    folder = tmp_path / "setup"
    secure(folder, clients=["a"], port=4333)
    before = contents(folder)
    secure(folder, clients=["a"], hosts=["hub.example.org", "10.0.0.7"])
    after = contents(folder)
    assert {name for name in before if after[name] != before[name]} == {"server.pem", "setup.json"}
    signed = x509.load_pem_x509_certificate(after["server.pem"])
    above = x509.load_pem_x509_certificate(after["ca.pem"])
    signed.verify_directly_issued_by(above)
    names = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["hub.example.org"]
    assert list(map(str, names.get_values_for_type(x509.IPAddress))) == ["10.0.0.7"]


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"clients": ["a.b"]}, "clients"),
        ({"clients": ["a", "a"]}, "clients"),
        ({"clients": ["a", "A"]}, "clients"),
        ({"clients": ["hub"]}, "clients"),
        ({"clients": ["Observer"]}, "clients"),
        ({"clients": []}, "clients"),
        ({"clients": "abc"}, "clients"),
        ({"clients": ["a"], "runs": ["r>"]}, "runs"),
        ({"clients": ["a"], "hosts": ["not a host"]}, "hosts"),
        ({"clients": ["a"], "hosts": []}, "hosts"),
        ({"clients": ["a"], "port": 0}, "port"),
        ({"clients": ["a"], "port": 70000}, "port"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, given, parameter):
    with pytest.raises(MainstemError, match=f"^secure: {parameter} must ") as error:
        secure(tmp_path / "setup", **given)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "setup").exists()


def test_the_command_prints_what_to_do_next(tmp_path):
    def mainstem(*words):
        return subprocess.run(
            [sys.executable, "-m", "mainstem.cli", "secure", "my server", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    done = mainstem("--clients", "a, b", "--run", "load", "--port", "4333", "--json")
    output = json.loads(done.stdout)
    assert all((tmp_path / path).is_file() for path in output["files"])
    assert output["url"] == "tls://localhost:4333"
    assert output["commands"]["server"] == "cd 'my server' && nats-server -c server.conf"
    assert "--credentials 'my server/a.creds'" in output["commands"]["client"]
    again = mainstem("--clients", "a,b", "--run", "load")
    assert again.returncode == 1
    assert again.stderr.count("\n") == 1
    more = mainstem("--clients", "c", "--run", "load")
    assert "wrote my server/c.creds" in more.stdout
    assert "tls://localhost:4333" in more.stdout
