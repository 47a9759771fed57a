"""Access to one API server: its address, its certificate authority, and our credentials.

Credentials are read before every request, because tokens rotate: a projected service account token
is a new file every hour, a plugin's token expires. Files are read again when they change. After a
401 the credentials are rejected (`reject`); if a fresh one can be had, the request is sent once
more before the caller sees the error.

Certificates come inline or as files. Python's TLS needs a client certificate as files, so an inline
key is written to a directory that only we can read, and removed once it is loaded. Files are
checked by their modification time: a renewed certificate is used from the next request on.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bayplan.client.errors import ConfigError

LARGEST_TOKEN = 1 << 20


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate and its key, both PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


class Credentials(Protocol):
    """A source of credentials."""

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header, if there is one."""
        ...

    def certificate(self) -> ClientCertificate | None:
        """Return the client certificate, once `authorization` has been awaited."""
        ...

    def reject(self) -> bool:
        """Drop a credential that the server did not accept; True if there may be another."""
        ...


class Anonymous:
    """No credentials."""

    async def authorization(self) -> str | None:
        """Return None."""
        return None

    def certificate(self) -> ClientCertificate | None:
        """Return None."""
        return None

    def reject(self) -> bool:
        """Return False: there is no other credential."""
        return False


class StaticHeader(Anonymous):
    """The same Authorization every time: a bearer token, or a user and password."""

    def __init__(self, value: str) -> None:
        self._value = value

    @classmethod
    def bearer(cls, token: str) -> StaticHeader:
        """Return the header of a bearer token."""
        return cls(f"Bearer {checked_token(token, 'the token')}")

    @classmethod
    def basic(cls, user: str, password: str) -> StaticHeader:
        """Return the header of a user and password."""
        return cls("Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())

    async def authorization(self) -> str | None:
        """Return the header."""
        return self._value


class TokenFile(Anonymous):
    """A token in a file that another program renews."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._token = ""
        self._read()

    async def authorization(self) -> str | None:
        """Return the header of the token that is in the file now."""
        self._read()
        return f"Bearer {self._token}"

    def reject(self) -> bool:
        """Read the file again even if unmodified; True if the token has changed."""
        before, self._stamp = self._token, None
        self._read()
        return before != self._token

    def _read(self) -> None:
        """Read the token; while the file cannot be read, the last token stays."""
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
            if stamp == self._stamp:
                return
            self._token = checked_token(_read_text(self._path, found.st_size), str(self._path))
            self._stamp = stamp
        except (OSError, UnicodeDecodeError, ConfigError) as error:
            if not self._token:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                raise ConfigError(f"token file {self._path}: {reason}") from None


def _read_text(path: Path, size: int) -> str:
    if size > LARGEST_TOKEN:
        raise ConfigError("too large for a token")
    return path.read_text()


def checked_token(token: str, where: str) -> str:
    """Return the token without surrounding blanks; ConfigError if it cannot be in a header."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigError(f"{where} is empty, or has characters that a token cannot have")
    return token


Pem = bytes | Path


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The CA to trust (the system's if None), our client certificate, and the server's name."""

    authority: Pem | None = field(default=None, repr=False)
    certificate: Pem | None = field(default=None, repr=False)
    key: Pem | None = field(default=None, repr=False)
    server_name: str | None = None
    verify: bool = True

    def files(self) -> tuple[Path, ...]:
        """Return the files whose change requires a new TLS context."""
        parts = (self.authority, self.certificate, self.key)
        return tuple(part for part in parts if isinstance(part, Path))


class TlsContexts:
    """The current TLS context, made again only when a certificate has changed."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._made_for: object = None
        self._context: ssl.SSLContext | None = None

    def current(self, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
        """Return a context with that client certificate, or that of the settings."""
        wanted = (certificate, tuple(_modified(path) for path in self._settings.files()))
        if self._context is None or wanted != self._made_for:
            self._context = _context(self._settings, certificate)
            self._made_for = wanted
        return self._context


def _modified(path: Path) -> int:
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
        _load_certificate(context, certificate)
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


def _load_certificate(context: ssl.SSLContext, own: ClientCertificate) -> None:
    with tempfile.TemporaryDirectory(prefix="bayplan-") as private:
        certificate, key = Path(private, "certificate"), Path(private, "key")
        certificate.write_bytes(own.certificate)
        key.touch(mode=0o600)
        key.write_bytes(own.key)
        try:
            # With an empty password an encrypted key fails instead of prompting on the terminal.
            context.load_cert_chain(certificate, key, password=lambda: b"")
        except (ssl.SSLError, ValueError):
            raise ConfigError("the client certificate and its key do not match") from None


def _read(source: Pem, what: str) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        return source.read_bytes()
    except OSError as error:
        raise ConfigError(f"{what} {source}: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class Access:
    """The server's address, TLS settings and our credentials. Its repr shows no secret."""

    server: str
    tls: TlsSettings = field(default_factory=TlsSettings)
    credentials: Credentials = field(default_factory=Anonymous, repr=False)
    proxy: str | None = field(default=None, repr=False)
    namespace: str = "default"
    impersonation: tuple[tuple[str, str], ...] = ()
