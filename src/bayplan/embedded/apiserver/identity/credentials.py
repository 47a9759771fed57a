"""A server's own credentials: its authority and the administrator's token, in the data file."""

from __future__ import annotations

import contextlib
import os
import secrets
import ssl
import tempfile
from collections.abc import Generator, Iterable
from datetime import datetime
from pathlib import Path

from bayplan.embedded.apiserver.identity.authority import Authority, KeyPair
from bayplan.embedded.apiserver.identity.tokens import Tokens
from bayplan.embedded.apiserver.rest.request import ADMIN
from bayplan.embedded.apiserver.store.database import Database


def load_authority(database: Database, now: datetime) -> Authority:
    """The certificate authority of a data file, made the first time."""
    certificate, key = database.get_meta("ca.crt"), database.get_meta("ca.key")
    if certificate and key:
        return Authority(KeyPair(certificate, key))
    authority = Authority.create(now)
    database.put_meta("ca.crt", authority.pair.certificate)
    database.put_meta("ca.key", authority.pair.key)
    return authority


def load_token(database: Database) -> str:
    """The administrator's token of a data file, made the first time."""
    kept = database.get_meta("admin.token")
    if kept is None:
        kept = secrets.token_urlsafe(32).encode()
        database.put_meta("admin.token", kept)
    return kept.decode()


def load_tokens(admin: str, path: Path | None) -> Tokens:
    """Everybody who has a token: the administrator, and the users of a token file."""
    tokens = Tokens()
    tokens.add(admin, ADMIN)
    if path is not None:
        tokens.load(path)
    return tokens


def server_context(authority: Authority, hosts: Iterable[str], now: datetime) -> ssl.SSLContext:
    """TLS for the server, which asks clients for a certificate but does not insist."""
    pair = authority.server_pair(hosts, now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority.pair.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    with _private_file(pair.certificate + pair.key) as path:
        context.load_cert_chain(path)
    return context


@contextlib.contextmanager
def _private_file(content: bytes) -> Generator[Path, None, None]:
    """A file that only this user can read, for as long as it is needed."""
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield Path(path)
    finally:
        Path(path).unlink()
