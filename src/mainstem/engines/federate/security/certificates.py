"""Creates a certificate authority and the server certificate that it signs. Clients have no certificates."""

import datetime
import ipaddress
import re
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mainstem import check

DAYS = 3653  # a set-up lasts ten years
BEFORE = datetime.timedelta(days=1)  # clocks may differ
_HOST = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.IGNORECASE
)


def host(owner: str, parameter: str, name: str) -> str:
    """`name`, if it is the name or the address of a machine."""
    if not isinstance(name, str) or not (_address(name) or _HOST.fullmatch(name)):
        raise check.refuse(owner, parameter, "be the names or addresses of machines", name)
    return name


def address(owner: str, parameter: str, name: str) -> str:
    """`name`, if it is an IP address."""
    if not isinstance(name, str) or not _address(name):
        raise check.refuse(owner, parameter, "be an IP address", name)
    return name


def new_key() -> str:
    """A new private key on P-256, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def authority(key: str, days: int = DAYS) -> str:
    """The authority's certificate, signed by itself, in PEM. It is valid for ten years, or `days` if more."""
    private, end = _private(key), _in_days(max(days, DAYS))
    name = _named("mainstem authority")
    may = _usage(key_cert_sign=True, crl_sign=True)
    builder = (
        _builder(name, name, private, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(may, critical=True)
    )
    return _signed(builder, private)


def server(
    key: str,
    authority_key: str,
    authority_certificate: str,
    hosts: Sequence[str],
    days: int = DAYS,
) -> str:
    """The certificate of a server that is reached as `hosts`, in PEM. It ends no later than the authority's."""
    above = x509.load_pem_x509_certificate(authority_certificate.encode())
    end = min(_in_days(days), above.not_valid_after_utc)
    known = above.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)
    builder = (
        _builder(_named("mainstem server"), above.subject, _private(key), end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(by, critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(h) for h in hosts]), critical=False)
    )
    return _signed(builder, _private(authority_key))


def until(certificate: str) -> datetime.datetime:
    """When a certificate in PEM ends."""
    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc


def days_left(certificate: str) -> int:
    """The whole days for which a certificate in PEM is still valid; negative if it has ended."""
    return (until(certificate) - datetime.datetime.now(datetime.UTC)).days


def _in_days(days: int) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    end: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime.now(datetime.UTC) - BEFORE)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> str:
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def _private(key: str) -> ec.EllipticCurvePrivateKey:
    private = load_pem_private_key(key.encode(), None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    return private


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _general(name: str) -> x509.GeneralName:
    address = _address(name)
    return x509.DNSName(name) if address is None else x509.IPAddress(address)
