"""Privilege escalation checks, and impersonation.

The author of a role must have all permissions of the role, and the author of a binding those of the
bound role, unless they may `escalate` that role, or `bind` it. A role that does not exist can only
be bound with the `bind` verb.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from urllib.parse import unquote

from bayplan.embedded.apiserver.authorization.rbac import (
    GROUP,
    MASTERS,
    Attributes,
    Authorizer,
    RbacAuthorizer,
)
from bayplan.embedded.apiserver.errors import bad_request, forbidden, not_found
from bayplan.embedded.apiserver.identity import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import UserInfo
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest
from bayplan.embedded.apiserver.validation.names import dns_label, subdomain

_ROLES = ("roles", "clusterroles")
_BINDINGS = ("rolebindings", "clusterrolebindings")
_MAX_COMPARED = 200_000
"""Limit of single permissions of a rule, times the rules of the user."""


class EscalationGuard:
    """A validating admission step that prevents privilege escalation."""

    def __init__(self, rbac: RbacAuthorizer) -> None:
        self._rbac = rbac

    async def validate(self, request: AdmissionRequest) -> None:
        """Refuse a role or a binding that grants more than its author has."""
        call, obj = request.call, request.object
        if call.kind.group != GROUP or obj is None or MASTERS in call.user.groups:
            return
        if request.old_object is not None and _grants(obj) == _grants(request.old_object):
            return
        if call.kind.plural in _ROLES and not self._may(request, "escalate", call.kind.plural):
            self._check(request, obj.get("rules") or [])
        elif call.kind.plural in _BINDINGS:
            reference = obj.get("roleRef") or {}
            kind = "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
            name = reference.get("name") or ""
            if not self._may(request, "bind", kind, name):
                rules = self._rbac.role_rules(reference, call.namespace)
                if rules is None:
                    raise not_found(GROUP, kind, name)
                self._check(request, rules)

    def _may(self, request: AdmissionRequest, verb: str, plural: str, name: str = "") -> bool:
        call = request.call
        attributes = Attributes(
            call.user, verb, GROUP, plural, namespace=call.namespace, name=name or call.name
        )
        return self._rbac.authorize(attributes).allowed

    def _check(self, request: AdmissionRequest, rules: list[JsonObject]) -> None:
        call = request.call
        held = self._rbac.rules(call.user, call.namespace)
        missing = [rule for rule in rules if not is_held(rule, held)]
        if missing:
            detail = (
                f'user "{call.user.name}" (groups={list(call.user.groups)}) is attempting to grant '
                f"RBAC permissions not currently held: {missing}"
            )
            raise forbidden(GROUP, call.kind.plural, call.name, detail)


def _grants(obj: JsonObject) -> JsonObject:
    """Return a role or a binding without metadata that concerns only deletion."""
    ignored = ("finalizers", "ownerReferences", "managedFields", "resourceVersion")
    meta = {key: value for key, value in obj["metadata"].items() if key not in ignored}
    return {**obj, "metadata": meta}


Part = tuple[str, ...]
"""A single permission: verb, group, resource, name; or verb and path."""


def is_held(rule: JsonObject, held: list[JsonObject]) -> bool:
    """Return whether the user has all permissions of a rule; False for one above the limit."""
    if any(_covers_whole(one, rule) for one in held):
        return True
    many = 1
    for name in ("verbs", "apiGroups", "resources", "resourceNames"):
        many *= len(rule.get(name) or ()) or 1
    many += len(rule.get("verbs") or ()) * len(rule.get("nonResourceURLs") or ())
    return many * len(held) <= _MAX_COMPARED and all(_is_held(one, held) for one in _parts(rule))


def _covers_whole(held: JsonObject, rule: JsonObject) -> bool:
    """Return whether one rule of the user covers a rule entirely, the usual case."""
    if held.get("resourceNames") or rule.get("nonResourceURLs"):
        return False
    for name in ("verbs", "apiGroups", "resources"):
        values = held.get(name) or ()
        if "*" not in values and not set(rule.get(name) or ()) <= set(values):
            return False
    return True


def _parts(rule: JsonObject) -> Iterator[Part]:
    verbs = rule.get("verbs") or ()
    yield from product(verbs, rule.get("nonResourceURLs") or ())
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    yield from product(verbs, groups, resources, rule.get("resourceNames") or ("",))


def _is_held(part: Part, rules: list[JsonObject]) -> bool:
    return any(_covers(rule, part) for rule in rules)


def _covers(rule: JsonObject, part: Part) -> bool:
    if not _has(rule, "verbs", part[0]):
        return False
    if len(part) == 2:
        paths = rule.get("nonResourceURLs") or ()
        return any(
            part[1] == one or (one[-1:] == "*" and part[1].startswith(one[:-1])) for one in paths
        )
    _, group, resource, name = part
    names = rule.get("resourceNames") or ()
    return (
        _has(rule, "apiGroups", group)
        and _has(rule, "resources", resource)
        and (not names or name in names)
    )


def _has(rule: JsonObject, field: str, value: str) -> bool:
    values = rule.get(field) or ()
    return "*" in values or value in values


_PREFIX = "impersonate-"
_EXTRA = "extra-"
_SERVICE_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATION = "authentication.k8s.io"


def acting_user(
    user: UserInfo, headers: Iterable[tuple[bytes, bytes]], authorizer: Authorizer
) -> UserInfo:
    """Return the user of a request: its own, or one that it may impersonate."""
    given = list(_given(headers))
    if not given:
        return user
    wanted = _wanted(given)
    for attributes in _rights(user, wanted, given):
        if not authorizer.authorize(attributes).allowed:
            raise forbidden(
                attributes.group, attributes.resource, attributes.name, attributes.sentence()
            )
    return wanted


def _given(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[str, str]]:
    """Return the impersonation headers, without their common prefix."""
    for name, value in headers:
        if name[:12] == b"impersonate-" and value:
            yield name.decode("latin-1").removeprefix(_PREFIX), value.decode("utf-8", "replace")


def _wanted(given: list[tuple[str, str]]) -> UserInfo:
    """Return the impersonated user; a service account is in its default groups."""
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
    return UserInfo(names[0], _with_authenticated(names[0], groups), uids[0] if uids else "", extra)


def _with_authenticated(name: str, groups: list[str]) -> tuple[str, ...]:
    """Return the groups with `system:authenticated`."""
    everybody = UNAUTHENTICATED if name == ANONYMOUS else AUTHENTICATED
    if everybody not in groups and UNAUTHENTICATED not in groups:
        groups = [*groups, everybody]
    return tuple(groups)


def _rights(user: UserInfo, wanted: UserInfo, given: list[tuple[str, str]]) -> Iterator[Attributes]:
    """Return the attributes that the user must be authorized for."""
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
    """Return namespace and name of a service account; None for any other user."""
    if not name.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, _, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return None if dns_label(namespace) or subdomain(account) else (namespace, account)
