"""What a hub and a client keep is for their user alone, and no output shows a password."""

import os
import stat
import sys
import threading

import pytest

from mainstem.disk import PRIVATE, write
from mainstem.engines.federate.client.learner import join
from mainstem.engines.federate.hub.process import run_hub
from mainstem.engines.federate.protocol.run_document import parse
from mainstem.engines.federate.transport.connection import shown
from mainstem.errors import MainstemError
from tests.cli.command import mainstem
from tests.federate.in_process import run_content

FEDOGD = {"name": "fedogd", "step": 0.1}
LINEAR = {"name": "linear", "features": 2}
OTHERS = stat.S_IRWXG | stat.S_IRWXO


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def exposed(folder):
    """What other users of the machine may read or write."""
    if folder.stat().st_mode & OTHERS:
        return [folder, *(each for each in folder.iterdir() if each.stat().st_mode & OTHERS)]
    return []


def test_folders_of_a_hub_and_a_client(open_umask, tmp_path):
    document = parse(run_content(FEDOGD, LINEAR, clients=["a"], pace="lockstep", steps=2))
    folder = tmp_path / "runs" / "hub"

    def started(url):
        def lived():
            here = tmp_path / "runs" / "client"
            secret = folder / "private.creds"
            with pytest.raises(
                MainstemError, match="wants a credential file"
            ):  # another user of the machine
                join(url, run=document.rules.run, client="a")
            given = {"run": document.rules.run, "client": "a", "folder": here}
            with join(url, credentials=secret, **given) as learner:
                for _ in range(2):
                    learner.learn_one([1.0, 2.0], 1.0)

        threading.Thread(target=lived).start()

    run_hub(document, folder, started=started, sync="2m")
    assert (folder / "model.safetensors").exists()
    assert (tmp_path / "runs" / "client" / "client.state").exists()
    assert exposed(folder) == []
    assert exposed(tmp_path / "runs" / "client") == []
    assert exposed(folder / "nats-server") == []
    assert (folder / "private.creds").stat().st_mode & OTHERS == 0


def test_files_in_a_folder_that_was_open_before(open_umask, tmp_path):
    assert write(tmp_path / "state", b"1", PRIVATE).stat().st_mode & OTHERS == 0


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("nats://10.0.0.1:4222", "nats://10.0.0.1:4222"),
        ("nats://me:word@host:4222", "nats://host:4222"),
        ("nats://me:w@rd/x@host:4222", "nats://host:4222"),
        ("nats://token@one:1,tls://me:a@b@two:2", "nats://one:1,tls://two:2"),
    ],
)
def test_no_password_is_shown(url, safe):
    assert shown(url) == safe


def test_an_error_shows_no_password():
    with pytest.raises(MainstemError) as error:
        join("nats://me:s3cret@w0rd@127.0.0.1:1", run="r", client="a")
    assert "s3cret" not in str(error.value)
    assert "w0rd" not in str(error.value)
    assert "127.0.0.1:1" in str(error.value)


def test_a_join_with_a_file_imports_nothing_from_here(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('imported')")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    before = list(sys.path)
    words = "nats://127.0.0.1:1", "--run", "r", "--client", "a", "--stream", "a.csv"
    assert mainstem(tmp_path, "join", *words, "--wait", "0").returncode == 1
    assert sys.path == before
