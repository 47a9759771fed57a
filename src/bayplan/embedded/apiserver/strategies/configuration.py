"""Strategies of namespaces, config maps, secrets, service accounts, roles and bindings."""

from __future__ import annotations

import base64

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import Now, RestStrategy, child, fill, items
from bayplan.embedded.apiserver.validation import configuration, rbac
from bayplan.embedded.apiserver.validation.names import dns_label, path_segment

_NAME_LABEL = "kubernetes.io/metadata.name"
_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"


def _default_namespace(namespace: JsonObject) -> None:
    """Set the namespace's name label."""
    child(namespace["metadata"], "labels")[_NAME_LABEL] = namespace["metadata"]["name"]


def _new_namespace(namespace: JsonObject) -> None:
    finalizers = child(namespace, "spec").get("finalizers") or []
    if "kubernetes" not in finalizers:
        namespace["spec"]["finalizers"] = [*finalizers, "kubernetes"]
    namespace["status"] = {"phase": "Active"}


def _changed_namespace(new: JsonObject, old: JsonObject) -> None:
    """Keep the finalizers in spec, which only the finalize subresource changes."""
    new["spec"] = old.get("spec") or {}


def _namespace_status(new: JsonObject, _: JsonObject, __: Now) -> None:
    _default_namespace(new)
    fill(child(new, "status"), phase="Active")


def _default_secret(secret: JsonObject) -> None:
    fill(secret, type="Opaque")
    plain = secret.pop("stringData", None) or {}
    for name, value in plain.items():
        child(secret, "data")[name] = base64.b64encode(value.encode()).decode()


def _secret_warnings(secret: JsonObject, _: JsonObject | None) -> list[str]:
    """Warn about TLS secrets without PEM data."""
    if secret.get("type") != "kubernetes.io/tls":
        return []
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN " not in base64.b64decode((secret.get("data") or {}).get(key) or ""):
            return [f"tls: failed to find any PEM data in {what} input"]
    return []


def _new_account(account: JsonObject) -> None:
    """Keep only the names of an account's secrets."""
    if account.get("secrets"):
        account["secrets"] = [
            {"name": one["name"]} if one.get("name") else {} for one in account["secrets"]
        ]


def _changed_account(new: JsonObject, _: JsonObject) -> None:
    _new_account(new)


def _account_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    had = _MOUNTABLE in ((old or {"metadata": {}})["metadata"].get("annotations") or {})
    if had or _MOUNTABLE not in (new["metadata"].get("annotations") or {}):
        return []
    advice = "prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; {advice}"]


def _default_binding(obj: JsonObject) -> None:
    role = child(obj, "roleRef")
    role["apiGroup"] = role.get("apiGroup") or rbac.GROUP
    for subject in items(obj, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            fill(subject, apiGroup=rbac.GROUP)


CONFIGURATION = {
    "namespaces": RestStrategy(
        name_rule=dns_label,
        default=_default_namespace,
        prepare_create=_new_namespace,
        prepare_update=_changed_namespace,
        prepare_status=_namespace_status,
        validate=configuration.namespace_problems,
        validate_status=configuration.namespace_status_problems,
    ),
    "configmaps": RestStrategy(
        validate=configuration.config_map_problems,
        validate_update=configuration.frozen_problems,
    ),
    "secrets": RestStrategy(
        default=_default_secret,
        validate=configuration.secret_problems,
        validate_update=configuration.secret_change_problems,
        warnings=_secret_warnings,
    ),
    "serviceaccounts": RestStrategy(
        prepare_create=_new_account,
        prepare_update=_changed_account,
        warnings=_account_warnings,
        returns_deleted=True,
    ),
    "roles.rbac.authorization.k8s.io": RestStrategy(
        name_rule=path_segment, validate=rbac.role_problems, create_on_update=True
    ),
    "clusterroles.rbac.authorization.k8s.io": RestStrategy(
        name_rule=path_segment, validate=rbac.cluster_role_problems, create_on_update=True
    ),
    "rolebindings.rbac.authorization.k8s.io": RestStrategy(
        name_rule=path_segment,
        default=_default_binding,
        validate=rbac.binding_problems,
        validate_update=rbac.binding_change_problems,
        create_on_update=True,
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": RestStrategy(
        name_rule=path_segment,
        default=_default_binding,
        validate=rbac.cluster_binding_problems,
        validate_update=rbac.binding_change_problems,
        create_on_update=True,
    ),
}
