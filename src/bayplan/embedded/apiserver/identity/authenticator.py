"""Says who sent a request: by bearer token, else by client certificate, else nobody."""

from __future__ import annotations

from typing import TypeAlias

from bayplan.embedded.apiserver.identity.tokens import AUTHENTICATED, Tokens
from bayplan.embedded.apiserver.request import User

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
