"""AdmissionReview: the question to a webhook, and its answer."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field

from bayplan.embedded.apiserver.admission.webhooks.matching import Hook
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.kinds.views import to_shown
from bayplan.embedded.apiserver.rest.chain import AdmissionRequest

API_VERSION = "admission.k8s.io/v1"


class BadReview(Exception):  # noqa: N818 - an outcome that callers handle
    """A webhook's answer that cannot be understood."""


@dataclass(slots=True)
class Verdict:
    """What a webhook says."""

    allowed: bool
    message: str = ""
    code: int = 403
    reason: str = "Forbidden"
    patch: list[JsonValue] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def question(request: AdmissionRequest, hook: Hook, uid: str) -> JsonObject:
    """The review to send."""
    call, kind = request.call, hook.kind
    asked: JsonObject = {
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
        asked["namespace"] = call.namespace
    if call.subresource:
        asked["subResource"] = asked["requestSubResource"] = call.subresource
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": asked}


def _user(request: AdmissionRequest) -> JsonObject:
    user = request.call.user
    return {"username": user.name, "groups": list(user.groups), "uid": user.uid}


def _shown(obj: JsonObject | None, kind: Kind) -> JsonObject | None:
    return to_shown(kind, obj) if obj is not None else None


def _gvk(kind: Kind) -> JsonObject:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _gvr(kind: Kind) -> JsonObject:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def answer(review: JsonValue, uid: str) -> Verdict:
    """A webhook's answer, checked."""
    if not isinstance(review, dict) or not isinstance(review.get("response"), dict):
        raise BadReview("the answer has no response")
    response = review["response"]
    if response.get("uid") != uid:
        raise BadReview("the answer is to another request")
    if not isinstance(response.get("allowed"), bool):
        raise BadReview("the answer does not say whether the request is allowed")
    verdict = Verdict(response["allowed"], patch=_patch(response))
    verdict.warnings = [str(text) for text in response.get("warnings") or ()][:20]
    status = response.get("status")
    if isinstance(status, dict):
        verdict.message = str(status.get("message") or "")
        verdict.reason = str(status.get("reason") or "Forbidden")
        code = status.get("code")
        verdict.code = code if isinstance(code, int) and 400 <= code < 600 else 403
    return verdict


def _patch(response: JsonObject) -> list[JsonValue]:
    if response.get("patch") is None:
        return []
    if response.get("patchType") != "JSONPatch":
        raise BadReview("the patch is not of type JSONPatch")
    try:
        operations = decode(base64.b64decode(response["patch"], validate=True))
    except (ValueError, TypeError, RecursionError, binascii.Error) as problem:
        raise BadReview("the patch cannot be read") from problem
    if not isinstance(operations, list):
        raise BadReview("the patch is not a list of operations")
    return operations
