"""Authentication: certificates and tokens, and the kubeconfig that carries them.

The token file has Kubernetes' format: CSV lines `token,user,uid,"group1,group2"`.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import secrets
import ssl
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import yaml

from bayplan.client.serving.certificates import (
    CertificateAuthority,
    KeyPair,
    load_key_pair,
    server_tls,
)
from bayplan.embedded.apiserver.request import ADMIN, UserInfo
from bayplan.embedded.apiserver.store.database import Database

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"


class TokenFileError(Exception):
    """A token file that cannot be read."""


class TokenTable:
    """Users by token; only digests are stored, which makes the lookup constant-time."""

    def __init__(self) -> None:
        self._users: dict[bytes, UserInfo] = {}

    def add(self, token: str, user: UserInfo) -> None:
        """Add a token of a user."""
        self._users[_digest(token)] = user

    def find(self, token: str) -> UserInfo | None:
        """Return the user of a token, or None."""
        return self._users.get(_digest(token))

    def load(self, path: Path) -> None:
        """Add the users of a token file."""
        try:
            rows = list(csv.reader(path.read_text("utf-8").splitlines()))
        except (OSError, UnicodeDecodeError, csv.Error) as problem:
            raise TokenFileError(f"{path}: cannot be read: {problem}") from problem
        for number, row in enumerate(rows, 1):
            self._add_row(row, f"{path}:{number}")

    def _add_row(self, row: list[str], place: str) -> None:
        if not row or row[0].startswith("#"):
            return
        if len(row) < 3 or not row[0] or not row[1]:
            raise TokenFileError(f"{place}: needs at least token,user,uid")
        groups = [group.strip() for group in row[3].split(",")] if len(row) > 3 and row[3] else []
        self.add(row[0], UserInfo(row[1], (*groups, AUTHENTICATED), row[2]))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


PeerName: TypeAlias = tuple[tuple[tuple[str, str], ...], ...]
"""A certificate's subject, as `ssl` returns it."""


class Authenticator:
    """Authenticates requests by bearer token or client certificate."""

    def __init__(self, tokens: TokenTable) -> None:
        self.tokens = tokens

    def authenticate(self, authorization: bytes | None, peer: UserInfo | None) -> UserInfo | None:
        """Return the user, or None if the request is not authenticated."""
        if authorization is None:
            return peer
        scheme, _, token = authorization.decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return peer
        return self.tokens.find(token.strip())


def peer_user(subject: PeerName) -> UserInfo | None:
    """Return the user of a verified client certificate."""
    parts = [pair for group in subject for pair in group]
    names = [value for key, value in parts if key == "commonName"]
    groups = [value for key, value in parts if key == "organizationName"]
    return UserInfo(names[0], (*groups, AUTHENTICATED)) if names else None


def load_authority(database: Database, now: datetime) -> CertificateAuthority:
    """Return the certificate authority of a data file, created the first time."""
    certificate, key = database.get_meta("ca.crt"), database.get_meta("ca.key")
    if certificate and key:
        return CertificateAuthority(KeyPair(certificate, key))
    authority = CertificateAuthority.create(now)
    database.put_meta("ca.crt", authority.pair.certificate)
    database.put_meta("ca.key", authority.pair.key)
    return authority


def load_token(database: Database) -> str:
    """Return the administrator's token of a data file, created the first time."""
    kept = database.get_meta("admin.token")
    if kept is None:
        kept = secrets.token_urlsafe(32).encode()
        database.put_meta("admin.token", kept)
    return kept.decode()


def load_tokens(admin: str, path: Path | None) -> TokenTable:
    """Return the tokens of the administrator and of a token file."""
    tokens = TokenTable()
    tokens.add(admin, ADMIN)
    if path is not None:
        tokens.load(path)
    return tokens


def server_context(
    authority: CertificateAuthority, hosts: Iterable[str], now: datetime
) -> ssl.SSLContext:
    """Return the server's TLS context; client certificates are optional."""
    pair = authority.server_pair(hosts, now)
    context = server_tls()
    context.load_verify_locations(cadata=authority.pair.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    load_key_pair(context, pair)
    return context


_NAME = "bayplan"


def kubeconfig(url: str, ca: bytes, user: str, credentials: dict[str, str]) -> str:
    """Return a kubeconfig with one cluster, one user and one context."""
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(ca).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": user}}],
        "current-context": _NAME,
    }
    return yaml.safe_dump(document, sort_keys=False)


def check_kubeconfig_path(path: Path) -> None:
    """Raise OSError if a kubeconfig cannot be written there without replacing another's."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a directory, not a kubeconfig")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # it would be replaced, and removed on exit
        raise FileExistsError(f"{path}: a device or a pipe, not a file")
    if path.exists() and not _is_replaceable(path.read_bytes()):
        raise FileExistsError(
            f"{path}: not written by this server, so it is not overwritten; choose another path"
        )


def _is_replaceable(data: bytes) -> bool:
    """Return whether a file is empty, or a kubeconfig with only our cluster."""
    try:
        document = yaml.safe_load(data)
    except yaml.YAMLError:
        return False
    if not isinstance(document, dict):
        return document is None
    clusters = document.get("clusters")
    names = [one.get("name") for one in clusters or [] if isinstance(one, dict)]
    return bool(names) and set(names) == {_NAME}


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)
    temporary.write_text(text)
    temporary.replace(path)
