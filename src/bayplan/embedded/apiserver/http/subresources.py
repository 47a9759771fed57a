"""Requests about subresources that are more than a part of their object, and reviews."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.embedded.apiserver.authorization.rbac import Attributes, Authorizer
from bayplan.embedded.apiserver.errors import bad_request, method_not_allowed, no_such_path
from bayplan.embedded.apiserver.http.handlers import (
    HANDLERS,
    Answer,
    Exchange,
    Handler,
    conformed,
    read_object,
    read_patch,
    with_options,
)
from bayplan.embedded.apiserver.http.urls import delete_options
from bayplan.embedded.apiserver.http.wire.responses import Response, json_response
from bayplan.embedded.apiserver.identity import Authenticator
from bayplan.embedded.apiserver.jsontypes import JsonObject, encode
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.patch.patches import MERGE_PATCH, STRATEGIC_PATCH, Patch
from bayplan.embedded.apiserver.request import Call, User
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


_BINDING = Kind("", "v1", "Binding", "bindings")
_EVICTION = Kind("policy", "v1", "Eviction", "evictions")
_SCALE = Kind("autoscaling", "v1", "Scale", "scales")


async def _body(exchange: Exchange, kind: Kind) -> JsonObject:
    return conformed(exchange, await exchange.body(), kind)


def _check_address(call: Call, obj: JsonObject, kind: str) -> None:
    """What is made beside a pod names the pod, in the pod's namespace."""
    meta = obj.get("metadata") or {}
    if meta.get("namespace") and meta["namespace"] != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if (meta.get("name") or "") != call.name:
        raise bad_request(f"name in URL does not match name in {kind} object")


async def create_binding(exchange: Exchange) -> Answer:
    """Bind a pod to a node."""
    binding = await _body(exchange, _BINDING)
    name = exchange.call.name or (binding.get("metadata") or {}).get("name") or ""
    pods = exchange.backend.catalog.stored("pods")
    if pods is None:
        raise no_such_path()
    call = replace(exchange.call, kind=pods, name=name)
    _check_address(call, binding, "Binding")
    await bind(exchange.backend, call, binding)
    return json_response(_CREATED, 201)


async def create_eviction(exchange: Exchange) -> Answer:
    """Evict a pod."""
    eviction = await _body(exchange, _EVICTION)
    _check_address(exchange.call, eviction, "Eviction")
    options = delete_options({}, eviction.get("deleteOptions") or {})
    await evict(exchange.backend, *with_options(exchange.call, options))
    return json_response(_CREATED, 201)


async def get_scale(exchange: Exchange) -> Answer:
    """How many replicas there are and should be."""
    obj = exchange.backend.require(exchange.call).object()
    return json_response(scale_of(exchange.call.kind, obj))


async def update_scale(exchange: Exchange) -> Answer:
    """Set the number of replicas."""
    scale = await _body(exchange, _SCALE)
    settle_name(exchange.call, scale.get("metadata") or {})
    return await _change_scale(exchange, lambda _: scale)


async def patch_scale(exchange: Exchange) -> Answer:
    """Change the number of replicas."""
    _, patch = await read_patch(exchange)
    if patch.media_type == STRATEGIC_PATCH:
        patch = Patch(MERGE_PATCH, patch.content, patch.kind)
    return await _change_scale(exchange, patch.on)


async def _change_scale(exchange: Exchange, wanted: writes.Compute) -> Answer:
    kind = exchange.call.kind

    def rescale(obj: JsonObject) -> JsonObject:
        scale = wanted(scale_of(kind, obj))
        conform(replace(exchange.call, kind=_SCALE), scale)
        return with_scale(kind, obj, scale)

    entry = await writes.change(exchange.backend, exchange.call, rescale, trusted=True)
    return Response(encode(scale_of(kind, entry.object())))


async def finalize(exchange: Exchange) -> Answer:
    """Set a namespace's own finalizers."""
    obj = await read_object(exchange)
    finalizers = (obj.get("spec") or {}).get("finalizers") or []
    if not all(isinstance(name, str) for name in finalizers):
        raise bad_request("spec.finalizers must be a list of names")

    def settle(namespace: JsonObject) -> JsonObject:
        namespace["spec"] = {"finalizers": finalizers} if finalizers else {}
        return namespace

    entry = await writes.change(exchange.backend, exchange.call, settle, trusted=True)
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


def subresource_handler(kind: Kind, subresource: str, verb: str) -> Handler:
    """Who answers for a subresource."""
    if subresource not in kind.subresources:
        raise no_such_path()
    handler = _SUBRESOURCES.get((subresource, verb))
    if handler is None:
        raise method_not_allowed()
    return handler


class Reviews:
    """Answers who somebody is and what somebody may do."""

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

    def handler(self, kind: Kind) -> Handler | None:
        """Who answers a review; None for kinds that are stored."""
        return self._handlers.get(kind.kind) if kind.verbs == ("create",) else None

    async def _own_access(self, exchange: Exchange) -> Answer:
        review, spec = await _review(exchange)
        return self._decide(review, spec, exchange.call.user)

    async def _access(self, exchange: Exchange) -> Answer:
        review, spec = await _review(exchange)
        name, groups = spec.get("user") or "", spec.get("groups") or []
        if not name and not groups:
            raise bad_request("spec.user: Required value: at least one of user or group")
        return self._decide(review, spec, User(name, tuple(groups)))

    def _decide(self, review: JsonObject, spec: JsonObject, user: User) -> Answer:
        decision = self._authorizer.authorize(_attributes(spec, user))
        review["status"] = {"allowed": decision.allowed}
        if decision.reason:
            review["status"]["reason"] = decision.reason
        return json_response(review, 201)

    async def _own_rules(self, exchange: Exchange) -> Answer:
        review, spec = await _review(exchange)
        namespace = spec.get("namespace") or ""
        if not namespace:
            raise bad_request("no namespace on request")
        rules = self._authorizer.rules(exchange.call.user, namespace)
        review["status"] = {
            "resourceRules": [rule for rule in rules if "nonResourceURLs" not in rule],
            "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }
        return json_response(review, 201)

    async def _token(self, exchange: Exchange) -> Answer:
        review, spec = await _review(exchange)
        user = self._authenticator.tokens.find(spec.get("token") or "")
        review["spec"] = {}
        if user is None:
            review["status"] = {"authenticated": False, "error": "the token is not known"}
        else:
            review["status"] = {"authenticated": True, "user": _user_info(user)}
        return json_response(review, 201)

    async def _self(self, exchange: Exchange) -> Answer:
        review, _ = await _review(exchange)
        review["metadata"]["creationTimestamp"] = exchange.backend.now()
        review["status"] = {"userInfo": _user_info(exchange.call.user)}
        return json_response(review, 201)


async def _review(exchange: Exchange) -> tuple[JsonObject, JsonObject]:
    review = await read_object(exchange)
    kind = exchange.call.kind
    conform(exchange.call, review)
    review.update(kind=kind.kind, apiVersion=kind.api_version)
    review.setdefault("metadata", {})
    return review, review.get("spec") or {}


def _attributes(spec: JsonObject, user: User) -> Attributes:
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


def _user_info(user: User) -> JsonObject:
    info: JsonObject = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = user.extra
    return info
