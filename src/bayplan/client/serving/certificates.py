"""A certificate authority for server and client certificates, and TLS of servers, whose
certificate can be replaced while they serve.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = timedelta(days=3650)
"""How long a certificate is valid by default."""
_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def _name(common: str, organizations: Iterable[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    valid: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + valid)
    )


class CertificateAuthority:
    """A certificate authority with one key."""

    def __init__(self, pair: KeyPair) -> None:
        self.pair = pair
        self._certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the certificate authority's key is not an elliptic curve key")
        self._key = key

    @classmethod
    def create(
        cls, now: datetime, valid: timedelta = VALID, name: str = "bayplan-ca"
    ) -> CertificateAuthority:
        """Create a certificate authority with a new key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            _builder(subject, subject, key.public_key(), now, valid)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        return cls(KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key)))

    def server_pair(
        self,
        hosts: Iterable[str],
        now: datetime,
        valid: timedelta = VALID,
        name: str = "bayplan-apiserver",
    ) -> KeyPair:
        """Issue a certificate for a server with all its host names."""
        names = x509.SubjectAlternativeName([_host(host) for host in dict.fromkeys(hosts)])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        return self._issue(_name(name), [names, usage], now, valid)

    def client_pair(self, user: str, groups: Iterable[str], now: datetime) -> KeyPair:
        """Issue a client certificate: CN is the user, O are the groups."""
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(_name(user, groups), [usage], now, VALID)

    def _issue(
        self,
        subject: x509.Name,
        extensions: list[x509.ExtensionType],
        now: datetime,
        valid: timedelta,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self._certificate
        builder = _builder(subject, issuer.subject, key.public_key(), now, valid).add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
            critical=False,
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def server_tls() -> ssl.SSLContext:
    """Return the TLS context of a server, without a certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def load_key_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Use that certificate for new connections; ssl.SSLError if it cannot be loaded."""
    with _private_file(pair.certificate + pair.key) as path:
        server_tls().load_cert_chain(path)  # a failed load would break the one in use
        context.load_cert_chain(path)


@contextlib.contextmanager
def _private_file(content: bytes) -> Generator[Path, None, None]:
    """Write a temporary file that only this user can read."""
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield Path(path)
    finally:
        Path(path).unlink()
