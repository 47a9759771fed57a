"""Impersonation: whoever may act as somebody else says so in the request's headers."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.authorization.authorizer import Attributes, Authorizer
from bayplan.embedded.apiserver.errors import bad_request, forbidden
from bayplan.embedded.apiserver.identity.tokens import AUTHENTICATED
from bayplan.embedded.apiserver.request import User

_PREFIX = b"impersonate-"
_USER, _GROUP = b"impersonate-user", b"impersonate-group"


def acting_user(user: User, headers: Iterable[tuple[bytes, bytes]], judge: Authorizer) -> User:
    """The user that a request acts as: its own, or one that it may impersonate."""
    given = [(name, value.decode("latin-1")) for name, value in headers if name[:12] == _PREFIX]
    if not given:
        return user
    names = [value for name, value in given if name == _USER]
    groups = [value for name, value in given if name == _GROUP]
    if len(names) != 1 or len(names) + len(groups) != len(given):
        raise bad_request("only one Impersonate-User and any Impersonate-Group are understood")
    _require(user, "users", names[0], judge)
    for group in groups:
        _require(user, "groups", group, judge)
    return User(names[0], tuple(dict.fromkeys((*groups, AUTHENTICATED))))


def _require(user: User, resource: str, name: str, judge: Authorizer) -> None:
    attributes = Attributes(user, "impersonate", "", resource, name=name)
    if not judge.authorize(attributes).allowed:
        raise forbidden("", resource, name, attributes.sentence())
