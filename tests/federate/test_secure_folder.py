"""The folder that `secure` writes: what is private, what is added, what is never overwritten."""

import asyncio
import contextlib
import json
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509

from mainstem.engines.federate.security import certificates, credentials, record
from mainstem.engines.federate.security.setup import observe, renew, revoke, rotate, secure
from mainstem.engines.federate.security.summary import summary
from mainstem.engines.federate.transport import connection as connections
from mainstem.errors import MainstemError
from tests.federate.secured import free_port, serving


def contents(folder):
    files = [path for path in folder.iterdir() if path.is_file() and path.name != "lock"]
    return {path.name: path.read_bytes() for path in files}


def test_what_is_private_is_private(tmp_path):
    folder = tmp_path / "here" / "setup"
    paths = secure(folder, clients=["a", "b"]).files
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


OLDER = """\
# Written by `mainstem secure`, which adds clients and runs to it: changes made by hand are lost then.
# Start it within this folder:  nats-server -c server.conf
port: {port}
max_payload: 8MB
tls {{
  cert_file: "server.pem"
  key_file: "server.key"
  min_version: "1.3"
}}
jetstream {{
  store_dir: "data"
  sync_interval: always
}}
accounts: {accounts}
"""


def make_older(folder, added=""):
    """Turns a set-up into one of the first layout, with everything in server.conf, and lines added by hand."""
    made = json.loads((folder / "setup.json").read_text())
    used = {"hub": "hub", "observer": "observer"} | {made["accounts"][n]: n for n in made["runs"]}
    accounts = json.loads((folder / "accounts.conf").read_text().partition("accounts: ")[2])
    named = {used[name]: account for name, account in accounts.items() if name in used}
    text = OLDER.format(port=made["port"], accounts=json.dumps(named, indent=1))
    (folder / "server.conf").write_text(text + added)
    fields = {name: made[name] for name in ("hosts", "port", "keys", "runs")}
    (folder / "setup.json").write_text(json.dumps(fields, indent=1) + "\n")
    for name in ("listen.conf", "accounts.conf"):
        (folder / name).unlink()


def agrees(folder):
    """Whether everybody's credential is the one that the set-up and the server's configuration know."""
    made = json.loads((folder / "setup.json").read_text())
    users = {"hub", "observer", *made["runs"], *made["observers"]}
    files = {n: credentials.public(credentials.seed_in(folder / f"{n}.creds")) for n in users}
    configured = re.findall(r'"nkey": "(\w+)"', (folder / "accounts.conf").read_text())
    return made["keys"] == files and sorted(configured) == sorted(files.values())


def test_changes_made_by_hand_are_kept(tmp_path):
    folder = tmp_path / "setup"
    secure(folder, clients=["a"])
    with (folder / "server.conf").open("a") as file:
        file.write("http: 8222\n")
    edited = (folder / "server.conf").read_text()
    before = contents(folder)
    secure(folder, clients=["b"], runs=["other"])
    after = contents(folder)
    assert {name for name in before if after[name] != before[name]} == {
        "accounts.conf",
        "setup.json",
    }
    secure(folder, port=4333, bind="::1", hosts=["hub.example.org"])
    assert (folder / "server.conf").read_text() == edited
    assert (folder / "listen.conf").read_text().endswith('port: 4333\nhost: "::1"\n')
    assert agrees(folder)


def test_an_older_folder_is_upgraded(tmp_path):
    """The clients keep their keys and accounts; the server starts with it."""
    folder, port = tmp_path / "setup", free_port()
    secure(folder, clients=["a"], port=port)
    make_older(folder)
    keys = json.loads((folder / "setup.json").read_text())["keys"]
    change = secure(folder, clients=["b"])
    assert change.server == "restart"
    made = json.loads((folder / "setup.json").read_text())
    assert made["accounts"] == {"a": "a", "b": "user-1"}
    assert {name: made["keys"][name] for name in keys} == keys
    assert agrees(folder)

    async def main():
        for name in ("a", "b", "hub"):
            path = folder / f"{name}.creds"
            await (await connections.connect(f"tls://localhost:{port}", path, name=name)).close()

    with serving(folder, port, "-c", "server.conf"):
        asyncio.run(main())


def test_an_older_folder_with_changes_made_by_hand_is_left_alone(tmp_path):
    folder = tmp_path / "setup"
    secure(folder, clients=["a"])
    make_older(folder, "http: 8222\n")
    before = contents(folder)
    for change in (lambda: secure(folder, clients=["b"]), lambda: revoke(folder, ["a"])):
        with pytest.raises(MainstemError, match=r"rename it to server\.conf\.old") as error:
            change()
        assert "\n" not in str(error.value)
        assert contents(folder) == before
    (folder / "server.conf").rename(folder / "server.conf.old")
    secure(folder, clients=["b"])
    assert "include ./accounts.conf" in (folder / "server.conf").read_text()
    assert agrees(folder)


def test_what_is_there_is_never_overwritten(tmp_path):
    folder = tmp_path / "setup"
    secure(folder, clients=["a", "b"])
    before = contents(folder)
    with pytest.raises(MainstemError, match=r"days must come with other hosts or with --renew"):
        secure(folder, clients=["c"], days=3)
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


class Interrupted(Exception):
    """Stands for a kill."""


CALLS = {
    "add": lambda folder: secure(folder, clients=["b"], runs=["other"], port=4333),
    "observe": lambda folder: observe(folder, "guest", ["main"]),
    "revoke": lambda folder: revoke(folder, ["a"]),
    "rotate": lambda folder: rotate(folder, ["a", "hub"]),
    "upgrade": lambda folder: (make_older(folder), secure(folder, clients=["b"])),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupted_call_can_be_repeated_or_left(tmp_path, monkeypatch, name):
    """Whatever was the last file that it moved, a repetition or another call completes it."""
    first = tmp_path / "first"
    secure(first, clients=["a", "kept"])
    replace = Path.replace
    for last in range(20):
        for left in (False, True):
            folder = tmp_path / f"{last}-{left}"
            shutil.copytree(first, folder)
            moved = []

            def move(path, target, moved=moved, last=last):
                if len(moved) == last:
                    raise Interrupted
                moved.append(target)
                return replace(path, target)

            with monkeypatch.context() as patch:
                patch.setattr(Path, "replace", move)
                with contextlib.suppress(Interrupted):
                    CALLS[name](folder)
                    assert last > 2
                    return
            kept = credentials.public(credentials.seed_in(folder / "kept.creds"))
            assert kept in b"".join(contents(folder).values()).decode()
            if left:
                secure(folder, clients=["z"])
            elif name == "upgrade":
                secure(folder, clients=["b"])
            else:
                CALLS[name](folder)
            assert agrees(folder), (last, left)
            if name == "revoke" and not left:
                assert not (folder / "a.creds").exists()


def test_two_calls_at_once_do_not_mix(tmp_path):
    folder = tmp_path / "setup"
    secure(folder, clients=["a"])
    before = contents(folder)
    with record.locked(folder):
        for name in set(CALLS) - {"upgrade"}:
            with pytest.raises(MainstemError, match="another process"):
                CALLS[name](folder)
    assert contents(folder) == before


def test_a_name_that_comes_back_has_another_key(tmp_path):
    folder = tmp_path / "setup"
    secure(folder, clients=["a", "b"])
    observe(folder, "guest", ["main"])
    old = {name: credentials.seed_in(folder / f"{name}.creds") for name in ("a", "guest")}
    revoke(folder, ["a", "guest"])
    assert agrees(folder)
    assert revoke(folder, ["a"]).server == "reload"  # the second time nothing is left to do
    secure(folder, clients=["a", "guest"])
    assert agrees(folder)
    for name, seed in old.items():
        assert credentials.seed_in(folder / f"{name}.creds") != seed
        assert credentials.seed_in(folder / f"{name}.creds.revoked") == seed


def test_a_summary_has_users_runs_and_days(tmp_path):
    folder = tmp_path / "setup"
    secure(folder, clients=["a"], days=90)
    secure(folder, clients=["b"], runs=["other"])
    observe(folder, "guest", ["other"])
    found = summary(folder)
    assert [(user["name"], user["role"], user["runs"]) for user in found["users"]] == [
        ("hub", "hub", ["main", "other"]),
        ("observer", "observer", ["main", "other"]),
        ("a", "client", ["main"]),
        ("b", "client", ["other"]),
        ("guest", "observer", ["other"]),
    ]
    days = {name: each["days_left"] for name, each in found["certificates"].items()}
    assert days == {"server": 89, "authority": certificates.DAYS - 1}
    (folder / "ca.pem").unlink()
    assert summary(folder)["certificates"]["authority"] is None
    with pytest.raises(MainstemError, match=r"ca\.pem: is needed for this"):
        renew(folder)


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
        ({"clients": ["a"], "bind": "hub.example.org"}, "bind"),
        ({"clients": ["a"], "days": 0}, "days"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, given, parameter):
    with pytest.raises(MainstemError, match=f"^secure: {parameter} must ") as error:
        secure(tmp_path / "setup", **given)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "setup").exists()


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        (lambda folder: revoke(folder, ["nobody"]), "revoke"),
        (lambda folder: revoke(folder, ["../a"]), "revoke"),
        (lambda folder: revoke(folder, ["hub"]), "revoke"),
        (lambda folder: revoke(folder, ["a", "observer"]), "revoke"),
        (lambda folder: rotate(folder, ["a", "nobody"]), "rotate"),
        (lambda folder: observe(folder, "a", ["main"]), "observer"),
        (lambda folder: observe(folder, "hub", ["main"]), "observer"),
        (lambda folder: observe(folder, "x.y", ["main"]), "observer"),
        (lambda folder: observe(folder, "guest", ["unknown"]), "run"),
        (lambda folder: renew(folder, 0), "days"),
        (lambda folder: secure(folder), "clients"),
    ],
)
def test_a_change_that_cannot_be_is_refused(tmp_path, change, parameter):
    folder = tmp_path / "setup"
    with pytest.raises(MainstemError):
        change(folder)
    assert not folder.exists()
    secure(folder, clients=["a"])
    before = contents(folder)
    with pytest.raises(MainstemError, match=f"^secure: {parameter} must ") as error:
        change(folder)
    assert "\n" not in str(error.value)
    assert contents(folder) == before


@pytest.mark.slow  # each call signs and writes everything
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
    reload = "reload  nats-server --signal reload='my server/nats-server.pid'\n"
    assert reload in more.stdout
    guest = json.loads(mainstem("--observer", "guest", "--run", "load", "--json").stdout)
    assert "--run load --credentials 'my server/guest.creds'" in guest["commands"]["status"]
    revoked = json.loads(mainstem("--revoke", "c, guest", "--json").stdout)
    assert revoked["server"] == "reload"
    assert "my server/c.creds.revoked" in revoked["files"]
    assert reload in mainstem("--rotate", "hub").stdout
    assert "wrote my server/server.pem" in mainstem("--renew", "--days", "30").stdout
    shown = mainstem("--show")
    assert "certificate of the server: 29 days left" in shown.stdout
    found = json.loads(mainstem("--show", "--json").stdout)
    assert [user["name"] for user in found["users"]] == ["hub", "observer", "a", "b"]
    for words in ((), ("--show", "--renew"), ("--observer", "x"), ("--run", "r", "--revoke", "a")):
        assert mainstem(*words).returncode == 2
