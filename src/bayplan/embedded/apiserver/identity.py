"""Who clients are: certificates and tokens, and the kubeconfig that carries them.

The file has Kubernetes' form: CSV lines `token,user,uid,"group1,group2"`.
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

from bayplan.client.serving.certificates import Authority, KeyPair, server_tls, show_pair
from bayplan.embedded.apiserver.request import ADMIN, User
from bayplan.embedded.apiserver.store.database import Database

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"


class TokenFileError(Exception):
    """A token file that cannot be read."""


class Tokens:
    """Users by their token; only digests are kept, so that a look-up's time says nothing."""

    def __init__(self) -> None:
        self._users: dict[bytes, User] = {}

    def add(self, token: str, user: User) -> None:
        """Let a token stand for a user."""
        self._users[_digest(token)] = user

    def find(self, token: str) -> User | None:
        """Who holds a token."""
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
        self.add(row[0], User(row[1], (*groups, AUTHENTICATED), row[2]))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


PeerName: TypeAlias = tuple[tuple[tuple[str, str], ...], ...]
"""A certificate's subject, as `ssl` gives it."""


class Authenticator:
    """Finds the user behind a request."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def authenticate(self, authorization: bytes | None, peer: User | None) -> User | None:
        """The user; None if nobody vouches for one."""
        if authorization is None:
            return peer
        scheme, _, token = authorization.decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return peer
        return self.tokens.find(token.strip())


def peer_user(subject: PeerName) -> User | None:
    """The user that a verified client certificate names."""
    parts = [pair for group in subject for pair in group]
    names = [value for key, value in parts if key == "commonName"]
    groups = [value for key, value in parts if key == "organizationName"]
    return User(names[0], (*groups, AUTHENTICATED)) if names else None


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


_NAME = "bayplan"


def kubeconfig(url: str, ca: bytes, user: str, credentials: dict[str, str]) -> str:
    """A kubeconfig with one cluster, one user and one context."""
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


def check_place(path: Path) -> None:
    """Raise OSError if a kubeconfig cannot be written there, or would replace somebody else's."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a directory, not a kubeconfig")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # it would be replaced, and removed in the end
        raise FileExistsError(f"{path}: a device or a pipe, not a file")
    if path.exists() and not _is_replaceable(path.read_bytes()):
        raise FileExistsError(f"{path}: not written by this server, and not replaced by it")


def _is_replaceable(data: bytes) -> bool:
    """Whether a file is empty, or a kubeconfig that knows no cluster but ours."""
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
    """Write a file that only its owner can read, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)
    temporary.write_text(text)
    temporary.replace(path)
