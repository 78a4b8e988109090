"""Changes of a server's users while it runs: one reload takes them, and everybody else stays connected."""

import asyncio
import contextlib
import shutil
import socket
import ssl
import subprocess
import time
from typing import NamedTuple

import nats
import pytest
from cryptography import x509
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

import mainstem as ms
from mainstem.engines.federate import control
from mainstem.engines.federate.client.learner import join_async
from mainstem.engines.federate.security import certificates, credentials, record, setup
from mainstem.engines.federate.transport import private_server
from mainstem.errors import MainstemError
from mainstem.replay import samples_at
from tests.federate.in_process import until
from tests.federate.secured import STEPS, WAIT, free_port, hubs, intruder, serving, settled

SOON = 5.0  # seconds within which a user who was locked out must be gone


class Server(NamedTuple):
    folder: object
    url: str

    def reload(self, times=1):
        """Reloads the server by the command that `mainstem secure` prints."""
        log = self.folder / "server.log"
        for _ in range(times):
            before = log.read_text().count("Reloaded server configuration")
            words = ["--signal", f"reload={self.folder / 'nats-server.pid'}"]
            subprocess.run([private_server.executable(), *words], check=True)
            end = time.monotonic() + WAIT
            while log.read_text().count("Reloaded server configuration") == before:
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.01)


@pytest.fixture
def server(tmp_path):
    """A server with the client a in the run r, and the client c in the run other."""
    folder, port = tmp_path / "setup", free_port()
    setup.secure(folder, clients=["a"], runs=["r"], port=port, bind="127.0.0.1")
    setup.secure(folder, clients=["c"], runs=["other"])
    with serving(folder, port, "-c", "server.conf"):
        yield Server(folder, f"tls://127.0.0.1:{port}")


@contextlib.asynccontextmanager
async def hub_of(server, *runs):
    """The hub's connection, with the streams of runs, a document and a status in each."""
    async with intruder(server, "hub") as (hub, errors):
        js = hub.jetstream()
        for run in runs:
            down = [f"ms.{run}.{what}" for what in ("model.*", "spec", "status")]
            await js.add_stream(StreamConfig(name=f"ms-{run}-up", subjects=[f"ms.{run}.up.*"]))
            await js.add_stream(
                StreamConfig(
                    name=f"ms-{run}-down", subjects=down, max_msgs_per_subject=1, allow_direct=True
                )
            )
            await js.publish(f"ms.{run}.spec", b"document")
            status = f'{{"run": "{run}", "state": "finished"}}'.encode()
            await js.publish(f"ms.{run}.status", status)
        yield hub
        assert not errors


async def takes_part(hub, client, name, run="r"):
    """The client uploads, reads the document, sends a heartbeat and receives broadcasts and refusals."""
    js = client.jetstream(timeout=WAIT)
    await js.publish(f"ms.{run}.up.{name}", b"upload")
    read = await js.get_msg(f"ms-{run}-down", subject=f"ms.{run}.spec", direct=True)
    assert read.data == b"document"
    here = await hub.subscribe(f"ms.{run}.here.*")
    await settled(hub)
    await client.publish(f"ms.{run}.here.{name}")
    assert (await here.next_msg(WAIT)).subject == f"ms.{run}.here.{name}"
    await here.unsubscribe()
    for subject in (f"ms.{run}.model.0", f"ms.{run}.no.{name}", f"ms.{run}.pulse"):
        received = await client.subscribe(subject)
        await settled(client)
        await hub.publish(subject, b"hub")
        assert (await received.next_msg(WAIT)).data == b"hub"
        await received.unsubscribe()


async def refused(server, path):
    """The server does not accept this credential."""
    known = credentials.options(path)
    with pytest.raises((nats.errors.Error, OSError)):
        await nats.connect(server.url, allow_reconnect=False, connect_timeout=WAIT, **known)


def test_a_client_is_added_by_one_reload(server):
    """It does everything at once, in a new run too; the others stay connected, and so do their subscriptions."""

    async def main():
        async with hub_of(server, "r", "more") as hub, intruder(server) as (a, errors):
            broadcasts = await a.subscribe("ms.r.model.*")
            await settled(a)
            change = setup.secure(server.folder, clients=["b", "a"], runs=["r", "more"])
            assert change.server == setup.RELOAD
            assert {path.name for path in change.files} == {
                "b.creds",
                "accounts.conf",
                "setup.json",
            }
            await refused(server, server.folder / "b.creds")
            server.reload()
            async with intruder(server, "b") as (b, problems):
                for run in ("r", "more"):
                    await takes_part(hub, b, "b", run)
                    await takes_part(hub, a, "a", run)
                assert not problems
            assert not errors
            assert broadcasts.pending_msgs == 2

    asyncio.run(main())


def test_a_federation_works_through_reloads(server):
    """In lockstep everybody waits for everybody: nothing that was sent may be lost for good."""
    stream = ms.streams.digits(2)
    setup.secure(server.folder, clients=["b"], runs=["r"])
    server.reload()

    def add(name):
        setup.secure(server.folder, clients=[name], runs=["r", "other"])
        server.reload()

    async def client(name, k):
        path = server.folder / f"{name}.creds"
        async with await join_async(server.url, run="r", client=name, credentials=path) as learner:
            for n, sample in enumerate(samples_at(stream, 3, k, 1, STEPS, "float32")):
                step = learner.step_with(sample)
                if name == "a":
                    await asyncio.gather(step, asyncio.to_thread(add, f"x{n}"))
                else:
                    await step
            return learner.step, learner.refusals

    async def main():
        async with hubs(server) as (_, (hub, _)):
            serve = asyncio.create_task(hub.serve())
            ends = await asyncio.wait_for(asyncio.gather(client("a", 0), client("b", 1)), 60)
            await asyncio.wait_for(serve, WAIT)
            return hub.aggregator.version, ends

    assert asyncio.run(main()) == (STEPS, [(STEPS, [])] * 2)


def test_more_clients_than_spare_accounts_need_two_reloads(server, monkeypatch):
    monkeypatch.setattr(record, "SPARE", 0)
    setup.secure(server.folder, clients=["b"], runs=["r"])
    server.reload()  # forgets the spare accounts
    change = setup.secure(server.folder, clients=["d"], runs=["r"])
    assert change.server == setup.RELOAD_TWICE
    server.reload(2)

    async def main():
        async with hub_of(server, "r") as hub, intruder(server, "d") as (d, errors):
            await takes_part(hub, d, "d")
            assert not errors

    asyncio.run(main())


def test_a_client_that_is_revoked_is_out_within_seconds(server, tmp_path):
    stolen = shutil.copy(server.folder / "a.creds", tmp_path / "stolen.creds")

    async def main():
        async with (
            hub_of(server, "r", "other") as hub,
            intruder(server) as (a, _),
            intruder(server, "c") as (c, errors),
        ):
            await takes_part(hub, a, "a")
            change = setup.revoke(server.folder, ["a"])
            assert change.server == setup.RELOAD
            server.reload()
            start = time.monotonic()
            await until(lambda: a.is_closed)
            assert time.monotonic() - start < SOON
            await refused(server, stolen)
            observer = server.folder / "observer.creds"
            assert len(await control.statuses(server.url, observer)) == 2  # r has no client left
            await takes_part(hub, c, "c", "other")
            assert not errors
            assert not (server.folder / "a.creds").exists()
            assert (server.folder / "a.creds.revoked").read_bytes() == stolen.read_bytes()
            setup.secure(server.folder, clients=["a"], runs=["r"])
            server.reload()
            await refused(server, stolen)
            async with intruder(server) as (a, errors):
                await takes_part(hub, a, "a")
                assert not errors

    asyncio.run(main())


@pytest.mark.parametrize("name", ["a", "hub", "observer"])
def test_a_key_that_is_rotated_is_out(server, tmp_path, name):
    stolen = shutil.copy(server.folder / f"{name}.creds", tmp_path / "stolen.creds")

    async def main():
        async with intruder(server, name) as (old, _), intruder(server, "c") as (other, errors):
            change = setup.rotate(server.folder, [name])
            assert f"{name}.creds" in {path.name for path in change.files}
            assert change.server == setup.RELOAD
            server.reload()
            await until(lambda: old.is_closed)
            await refused(server, stolen)
            await settled(other)
            assert not errors
        async with hub_of(server, "r") as hub:
            if name == "a":
                async with intruder(server) as (a, _):
                    await takes_part(hub, a, "a")
            async with await control.Observer.open(
                server.url, server.folder / "observer.creds"
            ) as observer:
                assert [each["run"] for each in await observer.statuses()] == ["r"]

    asyncio.run(main())


def shown_certificate(server):
    """The certificate that the server shows to somebody who connects now."""
    host, port = "127.0.0.1", int(server.url.rpartition(":")[2])
    context = ssl.create_default_context(cafile=server.folder / "ca.pem")
    with socket.create_connection((host, port), WAIT) as plain:
        plain.recv(4096)
        with context.wrap_socket(plain, server_hostname=host) as wrapped:
            der = wrapped.getpeercert(binary_form=True)
    return ssl.DER_cert_to_PEM_cert(der)


def test_a_certificate_is_renewed_by_a_reload(server):
    async def main():
        assert certificates.days_left(shown_certificate(server)) == certificates.DAYS - 1
        async with intruder(server) as (a, errors):
            change = setup.renew(server.folder, days=30)
            assert change.server == setup.RELOAD
            assert [path.name for path in change.files] == ["server.pem"]
            assert change.note is None
            server.reload()
            assert certificates.days_left(shown_certificate(server)) == 29
            await settled(a)
            assert not errors

    asyncio.run(main())


def test_an_authority_is_renewed_before_it_ends(tmp_path, monkeypatch):
    """Old credentials are good until then; new ones are good at once."""
    folder, port = tmp_path / "setup", free_port()
    with monkeypatch.context() as patch:
        patch.setattr(certificates, "DAYS", 100)
        setup.secure(folder, clients=["a"], port=port)
    old = tmp_path / "old.creds"
    shutil.copy(folder / "a.creds", old)
    change = setup.renew(folder)
    names = {"hub.creds", "observer.creds", "a.creds", "ca.pem", "server.pem"}
    assert {path.name for path in change.files} == names
    assert "within 99 days" in change.note
    assert credentials.seed_in(old) == credentials.seed_in(folder / "a.creds")
    authority = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    assert certificates.days_left((folder / "ca.pem").read_text()) == certificates.DAYS - 1
    x509.load_pem_x509_certificate((folder / "server.pem").read_bytes()).verify_directly_issued_by(
        authority
    )

    async def main():
        for path in (old, folder / "a.creds"):
            known = credentials.options(path)
            connection = await nats.connect(f"tls://localhost:{port}", **known)
            await connection.close()

    with serving(folder, port, "-c", "server.conf"):
        asyncio.run(main())


def test_the_server_listens_at_the_address_that_was_chosen(server):
    port = int(server.url.rpartition(":")[2])
    assert f"connections on 127.0.0.1:{port}" in (server.folder / "server.log").read_text()
    change = setup.secure(server.folder, bind="0.0.0.0")
    assert change.server == setup.RESTART


@pytest.mark.slow  # it waits for answers that must not come
def test_an_observer_of_one_run_sees_no_other(server):
    change = setup.observe(server.folder, "guest", ["r"])
    assert change.server == setup.RELOAD
    server.reload()
    path = server.folder / "guest.creds"
    forbidden = (
        *("ms.r.control", "ms.other.control", "ms.r.up.a", "ms.r.status", "ms.r.spec"),
        *("$JS.API.STREAM.NAMES", "$JS.hub.API.STREAM.NAMES", "$JS.API.STREAM.INFO.ms-other-down"),
        *("$JS.API.DIRECT.GET.ms-other-down.ms.other.status", "$JS.API.DIRECT.GET.ms-r-down"),
        *("$JS.API.DIRECT.GET.ms-other-down.ms.other.spec", "$KV.ms-r-hub.state"),
        "$JS.API.DIRECT.GET.ms-r-down.ms.r.model.0",
    )
    unheard = ("ms.other.status", "ms.*.status", "ms.r.model.*", "ms.>", ">", "_INBOX_a.>")

    async def main():
        async with hub_of(server, "r", "other") as hub, intruder(server, "guest") as (me, errors):
            assert [each["run"] for each in await control.statuses(server.url, path, "r")] == ["r"]
            document = await me.jetstream().get_msg("ms-r-down", subject="ms.r.spec", direct=True)
            assert document.data == b"document"
            heard = await me.subscribe("ms.r.status")
            closed = [await me.subscribe(subject) for subject in unheard]
            await settled(me)
            for run in ("other", "r"):
                await hub.publish(f"ms.{run}.status", b"{}")
            assert (await heard.next_msg(WAIT)).subject == "ms.r.status"
            assert not [each.subject for each in closed if each.pending_msgs]
            for subject in forbidden:
                await me.publish(subject, b"{}", reply="_INBOX_guest.x")
            await settled(me)
            denied = "".join(errors).lower()
            assert not [s for s in (*forbidden, *unheard) if f'to "{s}"'.lower() not in denied]
            with pytest.raises(MainstemError, match="--run"):
                await control.statuses(server.url, path)
            with pytest.raises(MainstemError, match="not for this credential"):
                await control.statuses(server.url, path, "other")

    asyncio.run(main())


def test_the_hub_does_everything_with_its_streams(server):
    async def main():
        async with hub_of(server, "r") as hub:
            js = hub.jetstream()
            config = (await js.stream_info("ms-r-up")).config
            await js.update_stream(config=config, max_msgs_per_subject=7)
            await js.purge_stream("ms-r-up")
            bucket = await js.create_key_value(bucket="ms-r-hub", history=1)
            revision = await bucket.put("state", b"1")
            await bucket.update("state", b"2", last=revision)
            assert (await bucket.get("state")).value == b"2"
            await bucket.delete("state")
            for name in ("ms-r-up", "ms-r-down", "KV_ms-r-hub"):
                await js.delete_stream(name)
                with pytest.raises(NotFoundError):
                    await js.stream_info(name)

    asyncio.run(main())
