"""Who we are: tokens, passwords and certificates, wherever they come from.

A source of credentials is asked before every request, because tokens rotate: a projected service
account token is a new file every hour, a plugin's token runs out. Files are read again when they
change. When the server answers 401 the source is told (`reject`), so that one which can get a fresh
credential does, once, before the caller hears of it.
"""

from __future__ import annotations

import base64
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
        """What to send as Authorization now, if anything."""
        ...

    def certificate(self) -> ClientCertificate | None:
        """The client certificate to show, once `authorization` has been awaited."""
        ...

    def reject(self) -> bool:
        """The server did not accept what it was given; True if asking again may help."""
        ...


class Anonymous:
    """No credentials at all."""

    async def authorization(self) -> str | None:
        """Nothing."""
        return None

    def certificate(self) -> ClientCertificate | None:
        """None."""
        return None

    def reject(self) -> bool:
        """There is nothing else to offer."""
        return False


class FixedHeader(Anonymous):
    """The same Authorization every time: a bearer token, or a user and password."""

    def __init__(self, value: str) -> None:
        self._value = value

    @classmethod
    def bearer(cls, token: str) -> FixedHeader:
        """A token."""
        return cls(f"Bearer {checked_token(token, 'the token')}")

    @classmethod
    def basic(cls, user: str, password: str) -> FixedHeader:
        """A user and password."""
        return cls("Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())

    async def authorization(self) -> str | None:
        """The header."""
        return self._value


class TokenFile(Anonymous):
    """A token in a file that somebody else keeps fresh."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._token = ""
        self._read()

    async def authorization(self) -> str | None:
        """The token as the file has it now."""
        self._read()
        return f"Bearer {self._token}"

    def reject(self) -> bool:
        """Read the file again, whatever its date says; True if the token has changed."""
        before, self._stamp = self._token, None
        self._read()
        return before != self._token

    def _read(self) -> None:
        """Take the file's token; while it is unreadable, the last one that was read stays."""
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
    """The token without surrounding blanks, if it can stand in a header."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigError(f"{where} is empty, or has characters that no token has")
    return token
