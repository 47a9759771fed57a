"""Matching of webhooks to writes, and the admission reviews.

Configurations rarely change: they are decoded once, and the match of their rules with a kind, an
operation and a subresource is cached. Only selectors are evaluated for every write.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode
from bayplan.embedded.apiserver.kinds.catalog import to_served
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, Backend
from bayplan.embedded.apiserver.rest.selectors import matches_selector
from bayplan.embedded.apiserver.store.entry import ObjectKey, StoreEntry

_EXEMPT = "admissionregistration.k8s.io"
"""Webhook configurations are exempt, so that a webhook cannot lock its own."""
RuleAttributes: TypeAlias = tuple[str, str, str, str, str]
"""What rules match: operation, group, version, resource and subresource."""


class MatchedWebhook(NamedTuple):
    """A webhook that matches a write, and the kind in which it wants the object."""

    configuration: str
    hook: JsonObject
    kind: ServedKind

    @property
    def name(self) -> str:
        """The webhook's name."""
        return str(self.hook.get("name", ""))


class WebhookConfigurations:
    """The webhook configurations of one storage name."""

    def __init__(self, backend: Backend, storage: str) -> None:
        self._backend = backend
        self._storage = storage
        self._listed: Sequence[StoreEntry] = ()
        self._generation = -1
        self._hooks: list[tuple[str, JsonObject]] = []
        self._ruled: dict[RuleAttributes, list[MatchedWebhook]] = {}

    def matching(self, request: AdmissionRequest) -> list[MatchedWebhook]:
        """Return the webhooks that match a write, in order."""
        self._refresh()
        if not self._hooks or request.call.kind.group == _EXEMPT:
            return []
        return [one for one in self._by_rules(request) if _selected(self._backend, one, request)]

    def _refresh(self) -> None:
        """Clear the cache if a configuration, or the served kinds, changed."""
        listed = self._backend.store.list(
            self._storage
        )  # the list is the same object until one changes
        generation = self._backend.catalog.generation
        if listed is self._listed and generation == self._generation:
            return
        self._listed, self._generation, self._ruled = listed, generation, {}
        self._hooks = [
            (entry.key.name, hook)
            for entry in listed
            for hook in entry.object().get("webhooks") or ()
        ]

    def _by_rules(self, request: AdmissionRequest) -> list[MatchedWebhook]:
        call, kind = request.call, request.call.kind
        write = (request.operation, kind.group, kind.version, kind.plural, call.subresource)
        found = self._ruled.get(write)
        if found is None:
            wanted = (
                (name, hook, _wanted_kind(self._backend, hook, request))
                for name, hook in self._hooks
            )
            found = [
                MatchedWebhook(name, hook, one) for name, hook, one in wanted if one is not None
            ]
            self._ruled[write] = found
        return found


def _wanted_kind(
    backend: Backend, hook: JsonObject, request: AdmissionRequest
) -> ServedKind | None:
    own = request.call.kind
    kinds = [own]
    if hook.get("matchPolicy") == "Equivalent":
        kinds += [kind for kind in backend.catalog.sharing(own.storage) if kind is not own]
    for kind in kinds:
        if any(_rule_matches(rule, kind, request) for rule in hook.get("rules") or ()):
            return kind
    return None


def _rule_matches(rule: JsonObject, kind: ServedKind, request: AdmissionRequest) -> bool:
    scope = rule.get("scope") or "*"
    return (
        _has(rule, "operations", request.operation)
        and _has(rule, "apiGroups", kind.group)
        and _has(rule, "apiVersions", kind.version)
        and scope in ("*", "Namespaced" if kind.namespaced else "Cluster")
        and any(
            _resource_matches(pattern, kind.plural, request.call.subresource)
            for pattern in rule.get("resources") or ()
        )
    )


def _has(rule: JsonObject, field: str, value: str) -> bool:
    values = rule.get(field) or ()
    return "*" in values or value in values


def _resource_matches(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, wanted = pattern.partition("/")
    return resource in ("*", plural) and wanted in (subresource, "*" if subresource else "")


def _selected(backend: Backend, found: MatchedWebhook, request: AdmissionRequest) -> bool:
    hook = found.hook
    spaces, objects = hook.get("namespaceSelector") or {}, hook.get("objectSelector") or {}
    labels = _namespace_labels(backend, request)
    if spaces and labels is not None and not matches_selector(spaces, labels):
        return False
    if not objects:
        return True
    either = (request.object, request.old_object)
    return any(matches_selector(objects, _labels(obj)) for obj in either if obj is not None)


def _namespace_labels(backend: Backend, request: AdmissionRequest) -> dict[str, str] | None:
    """Return the labels of the namespace of a write; None for cluster-scoped objects."""
    call = request.call
    if call.kind.storage == "namespaces":
        return _labels(request.object or request.old_object or {})
    if not call.kind.namespaced:
        return None
    entry = backend.store.get(ObjectKey("namespaces", "", call.namespace))
    return entry.labels if entry is not None else {}


def _labels(obj: JsonObject) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


API_VERSION = "admission.k8s.io/v1"


class BadReviewError(Exception):
    """A webhook's response that is invalid."""


@dataclass(slots=True)
class WebhookResponse:
    """The response of a webhook."""

    allowed: bool
    message: str = ""
    code: int = 403
    reason: str = "Forbidden"
    patch: list[JsonValue] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def admission_review(request: AdmissionRequest, hook: MatchedWebhook, uid: str) -> JsonObject:
    """Return the AdmissionReview to send."""
    call, kind = request.call, hook.kind
    review: JsonObject = {
        "uid": uid,
        "kind": _gvk(kind),
        "resource": _gvr(kind),
        "requestKind": _gvk(call.kind),
        "requestResource": _gvr(call.kind),
        "name": call.name,
        "operation": request.operation,
        "userInfo": _user(request),
        "object": _shown(request.object, kind),
        "oldObject": _shown(request.old_object, kind),
        "dryRun": call.dry_run,
        "options": request.options or None,
    }
    if call.namespace:
        review["namespace"] = call.namespace
    if call.subresource:
        review["subResource"] = review["requestSubResource"] = call.subresource
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": review}


def _user(request: AdmissionRequest) -> JsonObject:
    user = request.call.user
    return {"username": user.name, "groups": list(user.groups), "uid": user.uid}


def _shown(obj: JsonObject | None, kind: ServedKind) -> JsonObject | None:
    return to_served(kind, obj) if obj is not None else None


def _gvk(kind: ServedKind) -> JsonObject:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _gvr(kind: ServedKind) -> JsonObject:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def read_response(review: JsonValue, uid: str) -> WebhookResponse:
    """Return a webhook's response, validated."""
    if not isinstance(review, dict) or not isinstance(review.get("response"), dict):
        raise BadReviewError("the review has no response")
    response = review["response"]
    if response.get("uid") != uid:
        raise BadReviewError("the response has the UID of another request")
    if not isinstance(response.get("allowed"), bool):
        raise BadReviewError("the response does not have `allowed`")
    result = WebhookResponse(response["allowed"], patch=_patch(response))
    result.warnings = [str(text) for text in response.get("warnings") or ()][:20]
    status = response.get("status")
    if isinstance(status, dict):
        result.message = str(status.get("message") or "")
        result.reason = str(status.get("reason") or "Forbidden")
        code = status.get("code")
        result.code = code if isinstance(code, int) and 400 <= code < 600 else 403
    return result


def _patch(response: JsonObject) -> list[JsonValue]:
    if response.get("patch") is None:
        return []
    if response.get("patchType") != "JSONPatch":
        raise BadReviewError("the patch is not of type JSONPatch")
    try:
        operations = decode(base64.b64decode(response["patch"], validate=True))
    except (ValueError, TypeError, RecursionError, binascii.Error) as problem:
        raise BadReviewError("the patch cannot be decoded") from problem
    if not isinstance(operations, list):
        raise BadReviewError("the patch is not a list of operations")
    return operations
