"""Namespaces, nodes, services, secrets, volumes, classes and the other kinds with small habits."""

from __future__ import annotations

import base64

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.nodes import NODES
from bayplan.embedded.apiserver.strategies.services import SERVICES
from bayplan.embedded.apiserver.strategies.strategy import Strategy, child, fill, items
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, required
from bayplan.embedded.apiserver.validation.names import dns_label, path_segment


def _new_namespace(namespace: JsonObject) -> None:
    labels = child(namespace["metadata"], "labels")
    labels["kubernetes.io/metadata.name"] = namespace["metadata"]["name"]
    child(namespace, "spec")["finalizers"] = ["kubernetes"]
    namespace["status"] = {"phase": "Active"}


def _keep_namespace(new: JsonObject, old: JsonObject) -> None:
    """A namespace's own finalizers change by its finalize subresource only."""
    new["spec"] = old.get("spec") or {}


def _default_secret(secret: JsonObject) -> None:
    fill(secret, type="Opaque")
    plain = secret.pop("stringData", None) or {}
    for name, value in plain.items():
        child(secret, "data")[name] = base64.b64encode(value.encode()).decode()


def _keep_immutable(new: JsonObject, old: JsonObject) -> list[Cause]:
    if not old.get("immutable"):
        return []
    return [
        forbidden_field(field, "field is immutable when `immutable` is set")
        for field in ("data", "binaryData", "immutable")
        if new.get(field) != old.get(field)
    ]


def _default_priority(obj: JsonObject) -> None:
    fill(obj, preemptionPolicy="PreemptLowerPriority")
    fill(obj, value=0)


def _priority_change(new: JsonObject, old: JsonObject) -> list[Cause]:
    return [
        bad_value(name, new.get(name), "field is immutable")
        for name in ("value", "preemptionPolicy")
        if new.get(name) != old.get(name)
    ]


def _runtime_problems(obj: JsonObject) -> list[Cause]:
    return [] if obj.get("handler") else [required("handler")]


def _default_binding(obj: JsonObject) -> None:
    fill(child(obj, "roleRef"), apiGroup="rbac.authorization.k8s.io")
    for subject in items(obj, "subjects"):
        fill(
            subject,
            apiGroup="" if subject.get("kind") == "ServiceAccount" else "rbac.authorization.k8s.io",
        )


def _binding_change(new: JsonObject, old: JsonObject) -> list[Cause]:
    if new.get("roleRef") == old.get("roleRef"):
        return []
    return [bad_value("roleRef", new.get("roleRef"), "cannot change roleRef")]


def _default_webhooks(obj: JsonObject) -> None:
    for hook in items(obj, "webhooks"):
        fill(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        fill(hook, namespaceSelector={}, objectSelector={})
        if obj.get("kind", "").startswith("Mutating"):
            fill(hook, reinvocationPolicy="Never")
        for rule in items(hook, "rules"):
            fill(rule, scope="*")
        service = (hook.get("clientConfig") or {}).get("service")
        if service:
            fill(service, port=443)


def _webhook_problems(obj: JsonObject) -> list[Cause]:
    found: list[Cause] = []
    for index, hook in enumerate(items(obj, "webhooks")):
        place = f"webhooks[{index}]"
        if not hook.get("name"):
            found.append(required(f"{place}.name"))
        if not hook.get("sideEffects"):
            found.append(required(f"{place}.sideEffects"))
        if not hook.get("admissionReviewVersions"):
            found.append(required(f"{place}.admissionReviewVersions"))
        if hook.get("matchConditions"):
            why = "conditions in CEL are not evaluated by this server"
            found.append(forbidden_field(f"{place}.matchConditions", why))
        if not 1 <= hook["timeoutSeconds"] <= 30:
            why = "the timeout value must be between 1 and 30 seconds"
            found.append(bad_value(f"{place}.timeoutSeconds", hook["timeoutSeconds"], why))
    return found


_WEBHOOKS = Strategy(default=_default_webhooks, validate=_webhook_problems)
_ROLE = Strategy(name_rule=path_segment)
_BINDING = Strategy(
    name_rule=path_segment, default=_default_binding, validate_update=_binding_change
)

CLUSTER = {
    "namespaces": Strategy(
        name_rule=dns_label, prepare_create=_new_namespace, prepare_update=_keep_namespace
    ),
    "nodes": NODES,
    "services": SERVICES,
    "secrets": Strategy(default=_default_secret, validate_update=_keep_immutable),
    "configmaps": Strategy(validate_update=_keep_immutable),
    "serviceaccounts": Strategy(returns_deleted=True),
    "priorityclasses.scheduling.k8s.io": Strategy(
        default=_default_priority, validate_update=_priority_change
    ),
    "runtimeclasses.node.k8s.io": Strategy(validate=_runtime_problems),
    "leases.coordination.k8s.io": Strategy(create_on_update=True),
    "endpoints": Strategy(create_on_update=True),
    "events": Strategy(create_on_update=True),
    "roles.rbac.authorization.k8s.io": _ROLE,
    "clusterroles.rbac.authorization.k8s.io": _ROLE,
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
}
