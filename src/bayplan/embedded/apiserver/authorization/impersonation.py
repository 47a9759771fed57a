"""Impersonation: whoever may act as somebody else says so in the request's headers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from bayplan.embedded.apiserver.authorization.authorizer import Attributes, Authorizer
from bayplan.embedded.apiserver.errors import bad_request, forbidden
from bayplan.embedded.apiserver.identity.tokens import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED
from bayplan.embedded.apiserver.request import User
from bayplan.embedded.apiserver.validation.names import dns_label, subdomain

_PREFIX = "impersonate-"
_EXTRA = "extra-"
_SERVICE_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATION = "authentication.k8s.io"


def acting_user(user: User, headers: Iterable[tuple[bytes, bytes]], judge: Authorizer) -> User:
    """The user that a request acts as: its own, or one that it may impersonate."""
    given = list(_given(headers))
    if not given:
        return user
    wanted = _wanted(given)
    for attributes in _rights(user, wanted, given):
        if not judge.authorize(attributes).allowed:
            raise forbidden(
                attributes.group, attributes.resource, attributes.name, attributes.sentence()
            )
    return wanted


def _given(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[str, str]]:
    """The headers of impersonation, without what all their names begin with."""
    for name, value in headers:
        if name[:12] == b"impersonate-" and value:
            yield name.decode("latin-1").removeprefix(_PREFIX), value.decode("utf-8", "replace")


def _wanted(given: list[tuple[str, str]]) -> User:
    """Who the request wants to be; a service account is in its groups unless others are named."""
    names = [value for key, value in given if key == "user"]
    if not names:
        raise bad_request(f"requested {[key for key, _ in given]} without impersonating a user")
    groups = [value for key, value in given if key == "group"]
    account = _service_account(names[0])
    if account is not None and not groups:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account[0]}"]
    extra: dict[str, list[str]] = {}
    for key, value in given:
        if key.startswith(_EXTRA):
            extra.setdefault(unquote(key.removeprefix(_EXTRA)), []).append(value)
    uids = [value for key, value in given if key == "uid"]
    return User(names[0], _with_everybody(names[0], groups), uids[0] if uids else "", extra)


def _with_everybody(name: str, groups: list[str]) -> tuple[str, ...]:
    """The groups, with the one that everybody is in."""
    everybody = UNAUTHENTICATED if name == ANONYMOUS else AUTHENTICATED
    if everybody not in groups and UNAUTHENTICATED not in groups:
        groups = [*groups, everybody]
    return tuple(groups)


def _rights(user: User, wanted: User, given: list[tuple[str, str]]) -> Iterator[Attributes]:
    """What the user must be allowed to impersonate."""
    verb, account = "impersonate", _service_account(wanted.name)
    if account is not None:
        yield Attributes(user, verb, "", "serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield Attributes(user, verb, "", "users", name=wanted.name)
    for key, value in given:
        if key == "group":
            yield Attributes(user, verb, "", "groups", name=value)
    for key, values in wanted.extra.items():
        for value in values:
            yield Attributes(user, verb, _AUTHENTICATION, "userextras", key, name=value)
    if wanted.uid:
        yield Attributes(user, verb, _AUTHENTICATION, "uids", name=wanted.uid)


def _service_account(name: str) -> tuple[str, str] | None:
    """The namespace and the name of a service account; None for any other user."""
    if not name.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, _, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return None if dns_label(namespace) or subdomain(account) else (namespace, account)
