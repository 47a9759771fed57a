"""Bearer tokens: the administrator's own, and those of a static token file.

The file has Kubernetes' form: CSV lines `token,user,uid,"group1,group2"`.
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

from bayplan.embedded.apiserver.request import User

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
