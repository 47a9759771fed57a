"""Handlers of subresources with their own logic, and of reviews."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.embedded.apiserver.authorization.rbac import Attributes, Authorizer
from bayplan.embedded.apiserver.errors import bad_request, method_not_allowed, no_such_path
from bayplan.embedded.apiserver.http.handlers import (
    HANDLERS,
    Answer,
    Handler,
    RequestContext,
    conformed,
    read_object,
    read_patch,
    with_options,
)
from bayplan.embedded.apiserver.http.urls import delete_options
from bayplan.embedded.apiserver.http.wire.responses import Response, json_response
from bayplan.embedded.apiserver.identity import Authenticator
from bayplan.embedded.apiserver.jsontypes import JsonObject, encode
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.patch.patches import MERGE_PATCH, STRATEGIC_PATCH, PatchRequest
from bayplan.embedded.apiserver.request import Call, UserInfo
from bayplan.embedded.apiserver.rest import writes
from bayplan.embedded.apiserver.rest.conformance import conform
from bayplan.embedded.apiserver.rest.metadata import settle_name
from bayplan.embedded.apiserver.subresources import bind, evict, scale_of, with_scale

_CREATED: JsonObject = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}


_BINDING = ServedKind("", "v1", "Binding", "bindings")
_EVICTION = ServedKind("policy", "v1", "Eviction", "evictions")
_SCALE = ServedKind("autoscaling", "v1", "Scale", "scales")


async def _body(context: RequestContext, kind: ServedKind) -> JsonObject:
    return conformed(context, await context.body(), kind)


def _check_address(call: Call, obj: JsonObject, kind: str) -> None:
    """Check that a binding or eviction names the pod and namespace of the URL."""
    meta = obj.get("metadata") or {}
    if meta.get("namespace") and meta["namespace"] != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if (meta.get("name") or "") != call.name:
        raise bad_request(f"name in URL does not match name in {kind} object")


async def create_binding(context: RequestContext) -> Answer:
    """Bind a pod to a node."""
    binding = await _body(context, _BINDING)
    name = context.call.name or (binding.get("metadata") or {}).get("name") or ""
    pods = context.backend.catalog.stored("pods")
    if pods is None:
        raise no_such_path()
    call = replace(context.call, kind=pods, name=name)
    _check_address(call, binding, "Binding")
    await bind(context.backend, call, binding)
    return json_response(_CREATED, 201)


async def create_eviction(context: RequestContext) -> Answer:
    """Evict a pod."""
    eviction = await _body(context, _EVICTION)
    _check_address(context.call, eviction, "Eviction")
    options = delete_options({}, eviction.get("deleteOptions") or {})
    await evict(context.backend, *with_options(context.call, options))
    return json_response(_CREATED, 201)


async def get_scale(context: RequestContext) -> Answer:
    """Get the scale."""
    obj = context.backend.require(context.call).object()
    return json_response(scale_of(context.call.kind, obj))


async def update_scale(context: RequestContext) -> Answer:
    """Set the number of replicas."""
    scale = await _body(context, _SCALE)
    settle_name(context.call, scale.get("metadata") or {})
    return await _change_scale(context, lambda _: scale)


async def patch_scale(context: RequestContext) -> Answer:
    """Patch the number of replicas."""
    _, patch = await read_patch(context)
    if patch.media_type == STRATEGIC_PATCH:
        patch = PatchRequest(MERGE_PATCH, patch.content, patch.kind)
    return await _change_scale(context, patch.on)


async def _change_scale(context: RequestContext, wanted: writes.Compute) -> Answer:
    kind = context.call.kind

    def rescale(obj: JsonObject) -> JsonObject:
        scale = wanted(scale_of(kind, obj))
        conform(replace(context.call, kind=_SCALE), scale)
        return with_scale(kind, obj, scale)

    entry = await writes.change(context.backend, context.call, rescale, trusted=True)
    return Response(encode(scale_of(kind, entry.object())))


async def finalize(context: RequestContext) -> Answer:
    """Set the finalizers of a namespace's spec."""
    obj = await read_object(context)
    finalizers = (obj.get("spec") or {}).get("finalizers") or []
    if not all(isinstance(name, str) for name in finalizers):
        raise bad_request("spec.finalizers must be a list of names")

    def settle(namespace: JsonObject) -> JsonObject:
        namespace["spec"] = {"finalizers": finalizers} if finalizers else {}
        return namespace

    entry = await writes.change(context.backend, context.call, settle, trusted=True)
    return Response(entry.data)


_SUBRESOURCES: dict[tuple[str, str], Handler] = {
    ("binding", "create"): create_binding,
    ("eviction", "create"): create_eviction,
    ("scale", "get"): get_scale,
    ("scale", "update"): update_scale,
    ("scale", "patch"): patch_scale,
    ("finalize", "update"): finalize,
    ("status", "get"): HANDLERS["get"],
    ("status", "update"): HANDLERS["update"],
    ("status", "patch"): HANDLERS["patch"],
    **{
        (part, verb): HANDLERS[verb]
        for part in ("ephemeralcontainers", "resize")
        for verb in ("get", "update", "patch")
    },
}


def subresource_handler(kind: ServedKind, subresource: str, verb: str) -> Handler:
    """Return the handler of a subresource."""
    if subresource not in kind.subresources:
        raise no_such_path()
    handler = _SUBRESOURCES.get((subresource, verb))
    if handler is None:
        raise method_not_allowed()
    return handler


class Reviews:
    """Handlers of authentication and authorization reviews."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._handlers: dict[str, Handler] = {
            "SelfSubjectAccessReview": self._own_access,
            "SubjectAccessReview": self._access,
            "LocalSubjectAccessReview": self._access,
            "SelfSubjectRulesReview": self._own_rules,
            "TokenReview": self._token,
            "SelfSubjectReview": self._self,
        }

    def handler(self, kind: ServedKind) -> Handler | None:
        """Return the handler of a review; None for kinds that are stored."""
        return self._handlers.get(kind.kind) if kind.verbs == ("create",) else None

    async def _own_access(self, context: RequestContext) -> Answer:
        review, spec = await _review(context)
        return self._decide(review, spec, context.call.user)

    async def _access(self, context: RequestContext) -> Answer:
        review, spec = await _review(context)
        name, groups = spec.get("user") or "", spec.get("groups") or []
        if not name and not groups:
            raise bad_request("spec.user: Required value: at least one of user or group")
        return self._decide(review, spec, UserInfo(name, tuple(groups)))

    def _decide(self, review: JsonObject, spec: JsonObject, user: UserInfo) -> Answer:
        decision = self._authorizer.authorize(_attributes(spec, user))
        review["status"] = {"allowed": decision.allowed}
        if decision.reason:
            review["status"]["reason"] = decision.reason
        return json_response(review, 201)

    async def _own_rules(self, context: RequestContext) -> Answer:
        review, spec = await _review(context)
        namespace = spec.get("namespace") or ""
        if not namespace:
            raise bad_request("no namespace on request")
        rules = self._authorizer.rules(context.call.user, namespace)
        review["status"] = {
            "resourceRules": [rule for rule in rules if "nonResourceURLs" not in rule],
            "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }
        return json_response(review, 201)

    async def _token(self, context: RequestContext) -> Answer:
        review, spec = await _review(context)
        user = self._authenticator.tokens.find(spec.get("token") or "")
        review["spec"] = {}
        if user is None:
            review["status"] = {"authenticated": False, "error": "the token is unknown"}
        else:
            review["status"] = {"authenticated": True, "user": _user_info(user)}
        return json_response(review, 201)

    async def _self(self, context: RequestContext) -> Answer:
        review, _ = await _review(context)
        review["metadata"]["creationTimestamp"] = context.backend.now()
        review["status"] = {"userInfo": _user_info(context.call.user)}
        return json_response(review, 201)


async def _review(context: RequestContext) -> tuple[JsonObject, JsonObject]:
    review = await read_object(context)
    kind = context.call.kind
    conform(context.call, review)
    review.update(kind=kind.kind, apiVersion=kind.api_version)
    review.setdefault("metadata", {})
    return review, review.get("spec") or {}


def _attributes(spec: JsonObject, user: UserInfo) -> Attributes:
    path, wanted = spec.get("nonResourceAttributes"), spec.get("resourceAttributes")
    if path:
        return Attributes(user, path.get("verb") or "", path=path.get("path") or "")
    if not wanted:
        raise bad_request("spec: exactly one of resourceAttributes or nonResourceAttributes")
    return Attributes(
        user,
        wanted.get("verb") or "",
        wanted.get("group") or "",
        wanted.get("resource") or "",
        wanted.get("subresource") or "",
        wanted.get("namespace") or "",
        wanted.get("name") or "",
    )


def _user_info(user: UserInfo) -> JsonObject:
    info: JsonObject = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = user.extra
    return info
