"""Authorization by RBAC roles and bindings.

Roles and bindings are read from the store and cached until they change. Members of `system:masters`
may do everything; authenticated users may read discovery and review their own access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import UserInfo
from bayplan.embedded.apiserver.store.entry import ObjectKey, StoreEntry
from bayplan.embedded.apiserver.store.store import ApiObjectStore


class Attributes(NamedTuple):
    """The attributes of a request: on a resource, or on a non-resource path."""

    user: UserInfo
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def sentence(self) -> str:
        """Return the message of a refusal."""
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return (
            f'User "{self.user.name}" cannot {self.verb} resource "{resource}" in API group '
            f'"{self.group}" {where}'
        )


class AuthorizationDecision(NamedTuple):
    """Whether a request is allowed, and why."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides what users may do."""

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        """Return whether a request is allowed."""

    def rules(self, user: UserInfo, namespace: str) -> list[JsonObject]:
        """Return all rules of a user in a namespace."""


EVERYTHING: list[JsonObject] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]


class AlwaysAllow:
    """Allows everything to authenticated users."""

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:  # noqa: ARG002
        """Allow it."""
        return AuthorizationDecision(True)

    def rules(self, user: UserInfo, namespace: str) -> list[JsonObject]:  # noqa: ARG002
        """Return one rule that allows everything."""
        return EVERYTHING


@dataclass(frozen=True, slots=True)
class AuditingAuthorizer:
    """Passes every decision of another authorizer to an audit function."""

    authorizer: Authorizer
    audit: Callable[[Attributes, AuthorizationDecision], None]

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        """Return the other authorizer's decision."""
        decision = self.authorizer.authorize(attributes)
        self.audit(attributes, decision)
        return decision

    def rules(self, user: UserInfo, namespace: str) -> list[JsonObject]:
        """Return the other authorizer's rules."""
        return self.authorizer.rules(user, namespace)


GROUP = "rbac.authorization.k8s.io"
ROLES = f"roles.{GROUP}"
CLUSTER_ROLES = f"clusterroles.{GROUP}"
ROLE_BINDINGS = f"rolebindings.{GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{GROUP}"
MASTERS = "system:masters"

_BASIC: list[JsonObject] = [
    {
        "verbs": ["get"],
        "nonResourceURLs": [
            *("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"),
            *("/healthz", "/livez", "/readyz", "/version", "/version/"),
        ],
    },
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    {
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["selfsubjectreviews"],
    },
]


class RbacAuthorizer:
    """The RBAC authorizer."""

    def __init__(self, store: ApiObjectStore) -> None:
        self._store = store
        self._decoded: dict[ObjectKey, tuple[StoreEntry, JsonObject]] = {}

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        """Return whether a request is allowed."""
        user = attributes.user
        if MASTERS in user.groups:
            return AuthorizationDecision(True)
        for rule, detail in self._granted(user, attributes.namespace):
            if _allows(rule, attributes):
                return AuthorizationDecision(True, detail)
        return AuthorizationDecision(False)

    def rules(self, user: UserInfo, namespace: str) -> list[JsonObject]:
        """Return all rules of a user in a namespace."""
        if MASTERS in user.groups:
            return EVERYTHING
        return [rule for rule, _ in self._granted(user, namespace)]

    def _granted(self, user: UserInfo, namespace: str) -> Iterator[tuple[JsonObject, str]]:
        for rule in _BASIC:
            yield rule, "RBAC: allowed to all authenticated users"
        yield from self._bound(user, CLUSTER_ROLE_BINDINGS, "")
        if namespace:
            yield from self._bound(user, ROLE_BINDINGS, namespace)

    def _bound(
        self, user: UserInfo, storage: str, namespace: str
    ) -> Iterator[tuple[JsonObject, str]]:
        for entry in self._store.list(storage, namespace):
            binding = self._read(entry)
            if any(_is_subject(one, user, namespace) for one in binding.get("subjects") or ()):
                reference = binding.get("roleRef") or {}
                detail = f'RBAC: allowed by {binding["kind"]} "{entry.key.name}" of {reference}'
                for rule in self.role_rules(reference, namespace) or ():
                    yield rule, detail

    def role_rules(self, reference: JsonObject, namespace: str) -> list[JsonObject] | None:
        """Return the rules of the role of a binding; None if there is no such role."""
        name = reference.get("name") or ""
        if reference.get("kind") == "ClusterRole":
            entry = self._store.get(ObjectKey(CLUSTER_ROLES, "", name))
        else:
            entry = self._store.get(ObjectKey(ROLES, namespace, name)) if namespace else None
        return None if entry is None else self._read(entry).get("rules") or []

    def _read(self, entry: StoreEntry) -> JsonObject:
        kept = self._decoded.get(entry.key)
        if kept is None or kept[0] is not entry:
            kept = self._decoded[entry.key] = (entry, entry.object())
        return kept[1]


def _is_subject(subject: JsonObject, user: UserInfo, namespace: str) -> bool:
    name = subject.get("name") or ""
    match subject.get("kind"):
        case "User":
            return user.name == name
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            where = subject.get("namespace") or namespace
            return bool(where) and user.name == f"system:serviceaccount:{where}:{name}"
    return False


def _allows(rule: JsonObject, wanted: Attributes) -> bool:
    if not _has(rule, "verbs", wanted.verb):
        return False
    if wanted.path:
        return any(_covers(path, wanted.path) for path in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _has(rule, "apiGroups", wanted.group)
        and _resource(rule, wanted)
        and (not names or (bool(wanted.name) and wanted.name in names))
    )


def _has(rule: JsonObject, field: str, value: str) -> bool:
    values = rule.get(field) or ()
    return "*" in values or value in values


def _resource(rule: JsonObject, wanted: Attributes) -> bool:
    resources = rule.get("resources") or ()
    if not wanted.subresource:
        return "*" in resources or wanted.resource in resources
    full = f"{wanted.resource}/{wanted.subresource}"
    return "*" in resources or full in resources or f"*/{wanted.subresource}" in resources


def _covers(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return pattern == path
