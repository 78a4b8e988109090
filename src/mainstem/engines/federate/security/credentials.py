"""Credential files: the identity of a user of the NATS server, and the authority that the user trusts.

A file that `mainstem secure` wrote holds the secret key of one user and the certificate of the authority that
signed the server's. The files of other NATS set-ups are taken as well: one with a JWT, or a bare secret key.
"""

import os
import re
import ssl
from pathlib import Path
from typing import Any

import nkeys  # type: ignore[import-untyped]

from mainstem.engines.federate.security.permissions import inbox
from mainstem.errors import MainstemError

MAX_SIZE = 2**20  # bytes of a credential file
SEED = re.compile(r"^SU[A-Z2-7]{56}$", re.MULTILINE)
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
NAME = re.compile(r"^user: ([A-Za-z0-9_-]{1,64})$", re.MULTILINE)
TEXT = """\
Whoever has this file is this user of the NATS server: keep it secret.
user: {name}
-----BEGIN USER NKEY SEED-----
{seed}
------END USER NKEY SEED------

{authority}"""


def new_seed() -> str:
    """A new secret key."""
    return bytes(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)).decode()


def public(seed: str) -> str:
    """The public key that belongs to a secret one."""
    return bytes(nkeys.from_seed(bytearray(seed.encode())).public_key).decode()


def text(name: str, seed: str, authority: str) -> str:
    """The file of the user `name`, with the authority's certificate in PEM."""
    return TEXT.format(name=name, seed=seed, authority=authority)


def bare(seed: str) -> str:
    """The file of the only user of a private server."""
    return f"Whoever has this file may use the private NATS server of this run: keep it secret.\n{seed}\n"


def seed_in(path: Path) -> str:
    """The secret key in a credential file."""
    return _seed(path, _read(path))


def check_owner(path: Path, name: str) -> str:
    """Refuses a file that names another user. Returns its content."""
    content = _read(path)
    user = NAME.search(content)
    if user and name != user[1]:
        raise MainstemError(f"{path}: is the credential of {user[1]}, not of {name}")
    return content


def options(path: Path, name: str | None = None) -> dict[str, Any]:
    """The options of nats-py for a credential file. The user is `name`, or the one that the file names."""
    content = _read(path) if name is None else check_owner(path, name)
    user = NAME.search(content)
    seed = _seed(path, content)
    jwt = "BEGIN NATS USER JWT" in content
    found: dict[str, Any] = {"user_credentials": str(path)} if jwt else {"nkeys_seed_str": seed}
    if user:
        found["inbox_prefix"] = inbox(user[1])
    certificates = CERTIFICATE.findall(content)
    if certificates:
        found["tls"] = _trusting(path, "\n".join(certificates))
    return found


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SIZE + 1)
    except OSError as error:
        raise MainstemError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_SIZE:
        raise MainstemError(f"{path}: is too large for a credential file")
    return content.decode(errors="replace").replace("\r\n", "\n")


def _seed(path: Path, content: str) -> str:
    for seed in SEED.findall(content):
        prefix, raw = nkeys.decode_seed(bytearray(seed.encode()))
        if bytes(nkeys.encode_seed(bytes(raw), prefix)).decode() == seed:
            return str(seed)
    raise MainstemError(f"{path}: holds no secret key of a NATS user (a line SU...)")


def _trusting(path: Path, certificates: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=certificates)
    except ssl.SSLError:
        raise MainstemError(f"{path}: its certificate cannot be read") from None
