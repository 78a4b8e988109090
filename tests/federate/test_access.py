"""Access: whom a server set up by `secure` accepts, and which servers a client trusts."""

import asyncio
import contextlib
import socket
import ssl

import pytest

from mainstem.engines.federate.security import credentials
from mainstem.engines.federate.security.setup import secure
from mainstem.engines.federate.transport import connection as connections
from mainstem.errors import MainstemError
from tests.federate.secured import WAIT, free_port, serving, settled, turned_away


def refused(url, path=None, **options):
    with pytest.raises(MainstemError) as error:
        asyncio.run(connections.connect(url, path, **options))
    assert "\n" not in str(error.value)
    return str(error.value)


def trusting(folder):
    return ssl.create_default_context(cafile=folder / "ca.pem")


def test_nobody_comes_in_without_a_credential(secured_server, tmp_path):
    folder, url = secured_server
    assert turned_away(refused(url, tls=trusting(folder)))
    stranger = tmp_path / "stranger.creds"
    authority = (folder / "ca.pem").read_text()
    stranger.write_text(credentials.text("a", credentials.new_seed(), authority))
    assert turned_away(refused(url, stranger))


def test_nobody_gets_an_answer_without_tls(secured_server):
    port = int(secured_server[1].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), WAIT) as plain:
        plain.sendall(b'CONNECT {"verbose":true}\r\nPING\r\n')
        answer = b""
        with contextlib.suppress(OSError):
            while data := plain.recv(4096):
                answer += data
    assert answer.startswith(b"INFO ")
    assert b"PONG" not in answer
    assert b"+OK" not in answer


def test_a_server_of_another_authority_is_not_trusted(secured_server, tmp_path):
    folder, url = secured_server
    seed = credentials.seed_in(folder / "a.creds")
    secure(tmp_path / "other", clients=["a"])
    mixed = tmp_path / "mixed.creds"
    mixed.write_text(credentials.text("a", seed, (tmp_path / "other" / "ca.pem").read_text()))
    assert "certificate verify failed" in refused(url, mixed)
    bare = tmp_path / "bare"
    bare.write_text(seed + "\n")
    assert "certificate verify failed" in refused(url, bare)


def test_a_server_is_trusted_only_under_its_names(secured_server):
    folder, url = secured_server
    assert "certificate verify failed" in refused(
        url.replace("127.0.0.1", "127.0.0.2"), folder / "a.creds"
    )


@pytest.mark.parametrize("scheme", ["tls", "nats"])
def test_nothing_is_sent_to_a_server_without_tls(secured_server, scheme):
    """As a man in the middle would do: the greeting states that no TLS is required."""
    received = []

    async def greet(reader, writer):
        writer.write(b'INFO {"server_id":"x","nonce":"abc","headers":true,"max_payload":1000}\r\n')
        received.append(await reader.read(100))
        writer.close()

    async def main():
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(MainstemError, match="offers no TLS"):
                await connections.connect(
                    f"{scheme}://127.0.0.1:{port}", secured_server[0] / "a.creds"
                )

    asyncio.run(main())
    assert received
    assert not any(received)


def test_a_bare_key_and_a_password_will_do(secured_server, tmp_path):
    folder, url = secured_server
    bare = tmp_path / "bare"
    bare.write_text(credentials.seed_in(folder / "hub.creds"))

    async def answered(*words, **options):
        connection = await connections.connect(*words, **options)
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
            if len(failures) > 2 * connections.ATTEMPTS + 2:
                enough.set()

        async def returned():
            back.set()

        with serving(folder, port, "-c", "server.conf"):
            connection = await connections.connect(
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


def test_a_bad_credential_file_is_refused_in_one_line(secured_server, tmp_path):
    folder, url = secured_server
    assert "No such file" in refused(url, tmp_path / "none.creds")
    assert "Is a directory" in refused(url, tmp_path)
    seed = credentials.seed_in(folder / "a.creds")
    broken = tmp_path / "broken.creds"
    for content in ("", "hello", seed[:-1] + ("A" if seed[-1] != "A" else "B"), seed[:30]):
        broken.write_text(content)
        assert "holds no secret key" in refused(url, broken)
    whole = (folder / "a.creds").read_text()
    # Not just "MII", which a random seed can have too:
    broken.write_text(whole.replace("CERTIFICATE-----\nMII", "CERTIFICATE-----\n???", 1))
    assert "certificate cannot be read" in refused(url, broken)
    assert "is the credential of a, not of b" in refused(url, folder / "a.creds", name="b")
