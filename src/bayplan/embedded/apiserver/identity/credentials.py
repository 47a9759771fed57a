"""A server's own credentials: its authority and the administrator's token, in the data file."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from bayplan.client.serving.authority import Authority, KeyPair
from bayplan.client.serving.tls import server_tls, show_pair
from bayplan.embedded.apiserver.identity.tokens import Tokens
from bayplan.embedded.apiserver.request import ADMIN
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
    context = server_tls()
    context.load_verify_locations(cadata=authority.pair.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    show_pair(context, pair)
    return context
