"""A real server from what `secure` writes: the federation works through it, and nothing else does."""

import asyncio
import contextlib
import json
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time

import nats
import pytest
from cryptography import x509
from nats.js.errors import NotFoundError

import mainstem as ms
from mainstem.engines.federate import broker, charter, credentials
from mainstem.engines.federate.hub import Hub
from mainstem.engines.federate.learner import join_async
from mainstem.engines.federate.secure import secure
from mainstem.errors import MainstemError
from tests.federate.worlds import samples

STEPS = 4
WAIT = 10.0  # seconds for what should take none


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(folder, port, *words):
    """A server within `folder`."""
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen(
        [broker.executable(), *words], cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + WAIT
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.02)
        yield process
    finally:
        process.terminate()
        process.wait(WAIT)
        log.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """(folder, url) of a server with the runs r (clients a and b) and other (client c)."""
    folder = tmp_path_factory.mktemp("secure") / "setup"
    port = free_port()
    secure(folder, clients=["a", "b"], runs=["r"], port=port)
    secure(folder, clients=["c"], runs=["other"])
    with serving(folder, port, "-c", "server.conf"):
        yield folder, f"tls://127.0.0.1:{port}"


def agreed(run, clients):
    return charter.draw_up(
        {
            "problem": {"name": "softmax", "features": 64, "classes": 10},
            "algorithm": {"name": "fedogd", "step": 0.1},
            "federate": {
                "run": run,
                "clients": clients,
                "pace": "lockstep",
                "steps": STEPS,
                "seed": 3,
            },
        }
    )


@contextlib.asynccontextmanager
async def hubs(place):
    """The hub's connection, and the hub of each run on it; they take uploads and orders."""
    folder, url = place
    connection = await broker.connect(url, folder / "hub.creds")
    try:
        found = [Hub(agreed("r", ["a", "b"]), connection), Hub(agreed("other", ["c"]), connection)]
        for hub in found:
            await hub.open()
        yield connection, found
        await unheard(connection.jetstream())
    finally:
        await connection.close()


async def unheard(js):
    """Take away the hubs' ears at once, for the next test to count none but its own."""
    for name in ("ms-r-up", "ms-other-up"):
        for consumer in await js.consumers_info(name):
            await js.delete_consumer(name, consumer.name)


@contextlib.asynccontextmanager
async def intruder(place, name="a"):
    """nats-py itself with a user's credential, and the errors it is told."""
    folder, url = place
    errors = []

    async def note(error):
        errors.append(str(error))

    known = credentials.options(folder / f"{name}.creds")
    connection = await nats.connect(url, error_cb=note, allow_reconnect=False, **known)
    try:
        yield connection, errors
    finally:
        await connection.close()


async def settled(connection):
    """The server has all that was said. One flush will not do: its PING may overtake what waits."""
    await connection.flush()
    await connection.flush()


async def standing(connection, found):
    """All that a run has on the broker."""
    js = connection.jetstream()
    names = (
        "ms-r-up",
        "ms-r-down",
        "KV_ms-r-hub",
        "ms-other-up",
        "ms-other-down",
        "KV_ms-other-hub",
    )
    infos = [await js.stream_info(name) for name in names]
    latest = [
        (await js.get_msg(f"ms-{run}-down", subject=f"ms.{run}.{what}")).data
        for run in ("r", "other")
        for what in ("model.0", "spec", "status")
    ]
    state = await (await js.key_value("ms-r-hub")).get("state")
    listed = sorted(info.config.name for info in await js.streams_info())
    consumers = [len(await js.consumers_info(name)) for name in names]
    orders = [hub.status()["state"] for hub in found]
    return [(i.state.messages, i.state.last_seq, i.config.subjects) for i in infos], (
        latest,
        state.value,
        state.revision,
        listed,
        consumers,
        orders,
    )


# --- what must work --------------------------------------------------------------------------------


def test_a_federation_works_through_it(place):
    folder, url = place
    stream = ms.streams.digits(2)

    async def client(name, k):
        path = folder / f"{name}.creds"
        async with await join_async(url, run="r", client=name, credentials=path) as learner:
            for sample in samples(stream, 3, k, 1, STEPS, "float32"):
                await learner.step_with(sample)
            return learner.step, learner.link.latest.version, learner.link.refusals

    async def main():
        async with hubs(place) as (_, (hub, _)):
            start = hub.table.params.copy()
            serve = asyncio.create_task(hub.serve())
            ends = await asyncio.wait_for(asyncio.gather(client("a", 0), client("b", 1)), 20)
            await asyncio.wait_for(serve, WAIT)
            return hub, start, ends

    hub, start, ends = asyncio.run(main())
    assert ends == [(STEPS, STEPS, [])] * 2
    assert hub.table.version == STEPS
    assert abs(hub.table.params - start).max() > 0
    assert all(client["merged"] == STEPS for client in hub.status()["clients"].values())


def test_a_client_is_told_what_was_refused(place):
    async def main():
        async with hubs(place) as (hub, _), intruder(place) as (connection, errors):
            told = await connection.subscribe("ms.r.no.a")
            await settled(connection)
            await hub.publish("ms.r.no.a", b"late")
            return (await told.next_msg(WAIT)).data, errors

    assert asyncio.run(main()) == (b"late", [])


@pytest.mark.parametrize("subject", ["ms.r.pulse", "ms.r.candidate.0", "ms.r.model.0"])
def test_a_client_hears_the_hub_and_cannot_speak_for_it(place, subject):
    async def main():
        async with hubs(place) as (hub, _), intruder(place) as (me, errors):
            heard = await me.subscribe(subject)
            await settled(me)
            await hub.publish(subject, b"hub")
            first = (await heard.next_msg(WAIT)).data
            listening = await hub.subscribe(subject)
            await settled(hub)
            await me.publish(subject, b"intruder")
            await settled(me)
            with pytest.raises(nats.errors.TimeoutError):
                await listening.next_msg(0.3)
            return first, errors

    first, errors = asyncio.run(main())
    assert first == b"hub"
    assert any("permissions violation" in str(error).lower() for error in errors)


def test_a_client_says_that_it_is_there(place):
    async def main():
        async with hubs(place) as (hub, _), intruder(place) as (me, errors):
            signs = await hub.subscribe("ms.r.here.*")
            await settled(hub)
            await me.publish("ms.r.here.a")
            return (await signs.next_msg(WAIT)).subject, errors

    assert asyncio.run(main()) == ("ms.r.here.a", [])


def test_the_hub_reads_more_than_the_server_sends_unasked(place):
    """The server waits for a word on $JS.FC before it sends on."""
    many = 60

    async def main():
        async with hubs(place) as (hub, _), intruder(place) as (me, _):
            for n in range(many):
                await me.jetstream().publish("ms.r.up.a", bytes([n]) * 100_000)
            js = hub.jetstream()
            read = await js.subscribe("ms.r.up.a", stream="ms-r-up", ordered_consumer=True)
            got = []
            while bytes([many - 1]) not in got:
                got.append((await read.next_msg(WAIT)).data[:1])
            assert got[-many:] == [bytes([n]) for n in range(many)]

    asyncio.run(main())


def test_the_hub_takes_orders_from_its_own_credential(place):
    async def main():
        async with hubs(place) as (_, found), intruder(place, "hub") as (connection, _):
            for order, state in (("pause", "paused"), ("resume", "running")):
                answer = await connection.request("ms.other.control", order.encode(), timeout=WAIT)
                assert json.loads(answer.data)["state"] == state
                assert found[1].status()["state"] == state

    asyncio.run(main())


def test_the_observer_sees_how_the_runs_go_and_moves_nothing(place):
    forbidden = (
        *("ms.r.control", "ms.r.up.a", "ms.r.status", "ms.r.spec", "$KV.ms-r-hub.state"),
        *("$JS.API.STREAM.DELETE.ms-r-up", "$JS.API.STREAM.MSG.GET.ms-r-up"),
        *("$JS.API.DIRECT.GET.ms-r-down.ms.r.model.0", "$JS.API.CONSUMER.CREATE.ms-r-up"),
    )

    async def main():
        async with hubs(place) as (hub, found), intruder(place, "observer") as (me, errors):
            assert await broker.runs(me) == await broker.runs(hub) == ["other", "r"]
            js = me.jetstream()
            for what in ("status", "spec"):
                assert (await js.get_msg("ms-r-down", subject=f"ms.r.{what}", direct=True)).data
            said = await me.subscribe("ms.*.status")
            await settled(me)
            await found[0]._report()
            assert (await said.next_msg(WAIT)).subject == "ms.r.status"
            assert errors == []
            before = await standing(hub, found)
            for subject in forbidden:
                await me.publish(subject, b"finish", reply="ms.r.control")
            for subject in ("ms.r.status", "ms.r.spec"):
                await me.publish(f"$JS.API.DIRECT.GET.ms-r-down.{subject}", b"", reply="ms.r.spec")
            await settled(me)
            assert await broker.runs(me)
            assert [subject for subject in forbidden if not told(errors, "publish", subject)] == []
            assert await standing(hub, found) == before

    asyncio.run(main())


# --- what a client must not --------------------------------------------------------------------------


def told(errors, what, subject):
    """Whether the server has said that this is not allowed."""
    wanted = f'permissions violation for {what} to "{subject}"'.lower()
    return any(wanted in error.lower() for error in errors)


UNSAYABLE = (
    *("ms.r.up.b", "ms.r.model.0", "ms.r.spec", "ms.r.status", "ms.r.no.b", "_INBOX_b.x"),
    *("ms.r.here.b", "ms.r.control", "ms.other.control", "ms.other.up.a", "ms.other.up.c"),
    *("$KV.ms-r-hub.state", "$JS.API.DIRECT.GET.KV_ms-r-hub.$KV.ms-r-hub.state"),
    "$JS.API.STREAM.MSG.GET.KV_ms-r-hub",
    "$JS.API.DIRECT.GET.ms-other-down.ms.other.model.0",
    "$JS.API.DIRECT.GET.ms-other-down.ms.other.spec",
    *("$JS.API.DIRECT.GET.ms-r-down", "$JS.API.DIRECT.GET.ms-r-up.ms.r.up.b"),
    *("$JS.API.STREAM.MSG.GET.ms-r-up", "$JS.API.STREAM.MSG.DELETE.ms-r-up"),
    *("$JS.API.STREAM.CREATE.mine", "$JS.API.STREAM.UPDATE.ms-r-down"),
    *("$JS.API.STREAM.DELETE.ms-r-up", "$JS.API.STREAM.PURGE.ms-r-up"),
    *("$JS.API.STREAM.INFO.ms-r-up", "$JS.API.STREAM.NAMES", "$JS.hub.API.STREAM.NAMES"),
    *("$JS.API.CONSUMER.CREATE.ms-r-up", "$JS.API.CONSUMER.DURABLE.CREATE.ms-r-up.mine"),
    *("$JS.API.CONSUMER.CREATE.ms-r-up.mine.ms.r.up.b", "$JS.API.INFO", "$SYS.REQ.SERVER.PING"),
)


def test_a_client_says_only_its_own(place):
    async def main():
        async with hubs(place) as (hub, found), intruder(place) as (me, errors):
            answers = await me.subscribe("_INBOX_a.>")
            before = await standing(hub, found)
            for subject in UNSAYABLE:
                await me.publish(subject, b"finish", reply="_INBOX_a.answer")
            await settled(me)
            assert [subject for subject in UNSAYABLE if not told(errors, "publish", subject)] == []
            assert await standing(hub, found) == before
            assert answers.pending_msgs == 0
            await me.publish("ms.r.up.a", b"mine", reply="_INBOX_a.answer")
            assert json.loads((await answers.next_msg(WAIT)).data)["stream"] == "ms-r-up"

    asyncio.run(main())


UNHEARABLE = (
    *("_INBOX_b.>", "_INBOX_hub.>", "_INBOX.>", "ms.r.up.>", "ms.r.up.b", "ms.r.no.b", "ms.r.no.*"),
    *("ms.other.model.*", "ms.other.spec", "ms.r.control", "ms.r.status", "ms.*.model.*"),
    *("ms.>", ">", "$KV.>", "$JS.API.>", "$SYS.>"),
)


def test_a_client_hears_only_what_is_for_it(place):
    async def main():
        async with (
            hubs(place) as (hub, _),
            intruder(place) as (me, errors),
            intruder(place, "b") as (b, _),
        ):
            closed = [await me.subscribe(subject) for subject in UNHEARABLE]
            mine, last = [await me.subscribe(each) for each in ("ms.r.no.a", "ms.r.model.*")]
            await settled(me)
            assert [s for s in UNHEARABLE if not told(errors, "subscription", s)] == []
            await b.jetstream().publish("ms.r.up.b", b"secret")
            for subject in ("ms.r.no.b", "ms.r.no.a", "ms.r.status", "ms.other.model.0"):
                await hub.publish(subject, b"secret")
            await hub.publish("ms.r.model.0", b"the last")
            assert (await last.next_msg(WAIT)).data == b"the last"
            assert mine.pending_msgs == 1
            assert [each.subject for each in closed if each.pending_msgs] == []

    asyncio.run(main())


def test_a_client_reads_the_model_and_the_spec_of_its_run_alone(place):
    async def main():
        async with hubs(place), intruder(place) as (me, errors):
            js = me.jetstream(timeout=0.3)
            for what in ("model.0", "spec"):
                assert (await js.get_msg("ms-r-down", subject=f"ms.r.{what}", direct=True)).data
            assert errors == []
            for what in ("model.0", "spec"):
                with pytest.raises(TimeoutError):
                    await js.get_msg("ms-other-down", subject=f"ms.other.{what}", direct=True)

    asyncio.run(main())


def test_no_answer_of_the_server_can_be_sent_where_its_asker_may_not_write(place):
    """JetStream answers at any subject that a request names, without looking at permissions."""
    places = (
        *("ms.r.up.b", "ms.r.spec", "ms.r.model.0", "ms.r.status", "ms.r.control"),
        *("$KV.ms-r-hub.state", "$JS.API.STREAM.PURGE.ms-r-down", "ms.other.spec", "_INBOX_b.x"),
    )

    async def main():
        async with (
            hubs(place) as (hub, found),
            intruder(place) as (me, _),
            intruder(place, "b") as (b, _),
        ):
            elsewhere = await b.subscribe("_INBOX_b.>")
            await settled(b)
            (uploads, *others), rest = await standing(hub, found)
            for reply in places:
                await me.publish("ms.r.up.a", b"mine", reply=reply)
                await me.publish("$JS.API.DIRECT.GET.ms-r-down.ms.r.spec", b"", reply=reply)
            await me.jetstream().publish("ms.r.up.a", b"the last")
            await settled(b)
            (after, *same), rest_after = await standing(hub, found)
            assert same == others
            assert rest_after == rest
            assert after[1] == uploads[1] + len(places) + 1
            assert elsewhere.pending_msgs == 0
            with pytest.raises(NotFoundError):
                await hub.jetstream().get_msg(
                    "ms-r-up", seq=uploads[1] + 1, subject="ms.r.up.b", next=True
                )

    asyncio.run(main())


# --- who is not let in -------------------------------------------------------------------------------


def refused(url, path=None, **options):
    with pytest.raises(MainstemError) as error:
        asyncio.run(broker.connect(url, path, **options))
    assert "\n" not in str(error.value)
    return str(error.value)


def turned_away(why):
    """The server's word, or its closing the line before the word was read."""
    return "Authorization" in why or "reset" in why or "closed" in why


def trusting(folder):
    return ssl.create_default_context(cafile=folder / "ca.pem")


def test_nobody_comes_in_without_a_credential(place, tmp_path):
    folder, url = place
    assert turned_away(refused(url, tls=trusting(folder)))
    stranger = tmp_path / "stranger.creds"
    authority = (folder / "ca.pem").read_text()
    stranger.write_text(credentials.text("a", credentials.new_seed(), authority))
    assert turned_away(refused(url, stranger))


def test_nobody_is_heard_without_tls(place):
    port = int(place[1].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), WAIT) as plain:
        plain.sendall(b'CONNECT {"verbose":true}\r\nPING\r\n')
        heard = b""
        with contextlib.suppress(OSError):
            while data := plain.recv(4096):
                heard += data
    assert heard.startswith(b"INFO ")
    assert b"PONG" not in heard
    assert b"+OK" not in heard


def test_a_server_of_another_authority_is_not_trusted(place, tmp_path):
    folder, url = place
    seed = credentials.seed_in(folder / "a.creds")
    secure(tmp_path / "other", clients=["a"])
    mixed = tmp_path / "mixed.creds"
    mixed.write_text(credentials.text("a", seed, (tmp_path / "other" / "ca.pem").read_text()))
    assert "certificate verify failed" in refused(url, mixed)
    bare = tmp_path / "bare"
    bare.write_text(seed + "\n")
    assert "certificate verify failed" in refused(url, bare)


def test_a_server_is_trusted_only_under_its_names(place):
    folder, url = place
    assert "certificate verify failed" in refused(
        url.replace("127.0.0.1", "127.0.0.2"), folder / "a.creds"
    )


@pytest.mark.parametrize("scheme", ["tls", "nats"])
def test_a_server_without_tls_is_told_nothing(place, scheme):
    """As a man in the middle would have it: the greeting says that no TLS is wanted."""
    said = []

    async def greet(reader, writer):
        writer.write(b'INFO {"server_id":"x","nonce":"abc","headers":true,"max_payload":1000}\r\n')
        said.append(await reader.read(100))
        writer.close()

    async def main():
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(MainstemError, match="offers no TLS"):
                await broker.connect(f"{scheme}://127.0.0.1:{port}", place[0] / "a.creds")

    asyncio.run(main())
    assert said
    assert not any(said)


def test_a_bare_key_and_a_password_will_do(place, tmp_path):
    folder, url = place
    bare = tmp_path / "bare"
    bare.write_text(credentials.seed_in(folder / "hub.creds"))

    async def answered(*words, **options):
        connection = await broker.connect(*words, **options)
        await settled(connection)
        await connection.close()

    asyncio.run(answered(url, bare, name="hub", tls=trusting(folder)))
    port = free_port()
    words = ("-a", "127.0.0.1", "-p", str(port), "--user", "u", "--pass", "word")
    with serving(tmp_path, port, *words):
        asyncio.run(answered(f"nats://u:word@127.0.0.1:{port}"))
        why = refused(f"nats://u:wrong@127.0.0.1:{port}")
    assert turned_away(why)
    assert "wrong" not in why


def test_a_connection_comes_back_however_long_the_server_was_away(tmp_path):
    folder, port = tmp_path / "setup", free_port()
    secure(folder, clients=["a"], port=port)

    async def main():
        failures, enough, back = [], asyncio.Event(), asyncio.Event()

        async def note(error):
            failures.append(error)
            if len(failures) > 2 * broker.ATTEMPTS + 2:
                enough.set()

        async def returned():
            back.set()

        with serving(folder, port, "-c", "server.conf"):
            connection = await broker.connect(
                f"tls://localhost:{port}",
                folder / "a.creds",
                error_cb=note,
                reconnected_cb=returned,
            )
        await asyncio.wait_for(enough.wait(), WAIT)
        with serving(folder, port, "-c", "server.conf"):
            await asyncio.wait_for(back.wait(), WAIT)
            await connection.flush()
            await connection.close()

    asyncio.run(main())


def test_a_server_that_is_not_there_is_missed_at_once():
    why = refused(f"nats://u:word@127.0.0.1:{free_port()}")
    assert "no connection to a NATS server" in why
    assert "word" not in why


def test_a_file_with_a_jwt_is_left_to_nats(tmp_path):
    path = tmp_path / "ngs.creds"
    seed = credentials.new_seed()
    path.write_text(
        "-----BEGIN NATS USER JWT-----\neyJ0\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
    assert credentials.options(path, "a") == {"user_credentials": str(path)}


def test_a_bad_credential_file_is_refused_in_one_line(place, tmp_path):
    folder, url = place
    assert "No such file" in refused(url, tmp_path / "none.creds")
    assert "Is a directory" in refused(url, tmp_path)
    seed = credentials.seed_in(folder / "a.creds")
    broken = tmp_path / "broken.creds"
    for content in ("", "hello", seed[:-1] + ("A" if seed[-1] != "A" else "B"), seed[:30]):
        broken.write_text(content)
        assert "holds no secret key" in refused(url, broken)
    whole = (folder / "a.creds").read_text()
    broken.write_text(whole.replace("MII", "???", 1))
    assert "certificate cannot be read" in refused(url, broken)
    assert "is the credential of a, not of b" in refused(url, folder / "a.creds", name="b")


# --- the folder --------------------------------------------------------------------------------------


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
            return await broker.connect(url, path, name=name)
        except MainstemError:
            if time.monotonic() > end:
                raise


def test_a_client_that_is_added_joins_the_others(tmp_path):
    folder, port = tmp_path / "setup", free_port()
    secure(folder, clients=["a"], runs=["r"], port=port)
    before = contents(folder)
    url = f"tls://localhost:{port}"

    async def main(server):
        a = await broker.connect(url, folder / "a.creds", name="a")
        paths = secure(folder, clients=["b"], runs=["r"])
        assert {path.name for path in paths} == {"b.creds", "server.conf", "setup.json"}
        with pytest.raises(MainstemError) as unknown:
            await broker.connect(url, folder / "b.creds", name="b")
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
        patch.setattr("mainstem.engines.federate.secure.accounts", None)
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


def test_the_command_says_what_to_do_next(tmp_path):
    def mainstem(*words):
        return subprocess.run(
            [sys.executable, "-m", "mainstem.cli", "secure", "my broker", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    done = mainstem("--clients", "a, b", "--run", "load", "--port", "4333", "--json")
    said = json.loads(done.stdout)
    assert all((tmp_path / path).is_file() for path in said["files"])
    assert said["url"] == "tls://localhost:4333"
    assert said["commands"]["server"] == "cd 'my broker' && nats-server -c server.conf"
    assert "--credentials 'my broker/a.creds'" in said["commands"]["client"]
    again = mainstem("--clients", "a,b", "--run", "load")
    assert again.returncode == 1
    assert again.stderr.count("\n") == 1
    more = mainstem("--clients", "c", "--run", "load")
    assert "wrote my broker/c.creds" in more.stdout
    assert "tls://localhost:4333" in more.stdout
