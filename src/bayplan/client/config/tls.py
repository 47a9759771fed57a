"""How the server proves itself to us, and we to it.

Certificates come inline or as files. Python's TLS wants a client certificate as files, so an inline
key is put into a directory that only we can read, for as long as it takes to load it. Files are
watched by their dates: a renewed certificate is used from the next request on, without a restart.
"""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bayplan.client.config.credentials import ClientCertificate
from bayplan.client.errors import ConfigError

Pem = bytes | Path


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The CA to trust (the system's if None), our certificate, and the name to expect."""

    authority: Pem | None = field(default=None, repr=False)
    certificate: Pem | None = field(default=None, repr=False)
    key: Pem | None = field(default=None, repr=False)
    server_name: str | None = None
    verify: bool = True

    def files(self) -> tuple[Path, ...]:
        """The files whose change calls for a new context."""
        parts = (self.authority, self.certificate, self.key)
        return tuple(part for part in parts if isinstance(part, Path))


class TlsContexts:
    """The TLS context for now, made anew only when a certificate has changed."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._made_for: object = None
        self._context: ssl.SSLContext | None = None

    def current(self, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
        """A context with that client certificate, or else the settings' own."""
        wanted = (certificate, tuple(_date(path) for path in self._settings.files()))
        if self._context is None or wanted != self._made_for:
            self._context = _context(self._settings, certificate)
            self._made_for = wanted
        return self._context


def _date(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _context(settings: TlsSettings, own: ClientCertificate | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not settings.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.authority is None:
        context.load_default_certs()
    else:
        _trust(context, settings.authority)
    certificate = own or _own_certificate(settings)
    if certificate is not None:
        _show(context, certificate)
    return context


def _trust(context: ssl.SSLContext, authority: Pem) -> None:
    pem = _read(authority, "certificate authority")
    try:
        context.load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ConfigError("the certificate authority is not a PEM certificate") from None


def _own_certificate(settings: TlsSettings) -> ClientCertificate | None:
    if settings.certificate is None and settings.key is None:
        return None
    if settings.certificate is None or settings.key is None:
        raise ConfigError("a client certificate needs its key, and a key its certificate")
    certificate = _read(settings.certificate, "client certificate")
    return ClientCertificate(certificate, _read(settings.key, "client key"))


def _show(context: ssl.SSLContext, own: ClientCertificate) -> None:
    with tempfile.TemporaryDirectory(prefix="bayplan-") as private:
        certificate, key = Path(private, "certificate"), Path(private, "key")
        certificate.write_bytes(own.certificate)
        key.touch(mode=0o600)
        key.write_bytes(own.key)
        try:
            # A password callback that gives none keeps an encrypted key from asking the terminal.
            context.load_cert_chain(certificate, key, password=lambda: b"")
        except (ssl.SSLError, ValueError):
            raise ConfigError("the client certificate and key do not go together") from None


def _read(source: Pem, what: str) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        return source.read_bytes()
    except OSError as error:
        raise ConfigError(f"{what} {source}: {error.strerror}") from None
