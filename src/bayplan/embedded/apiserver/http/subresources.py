"""Requests about subresources that are more than a part of their object."""

from __future__ import annotations

from msgspec.structs import replace

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
from bayplan.embedded.apiserver.http.query import delete_options
from bayplan.embedded.apiserver.http.wire.responses import Response, json_response
from bayplan.embedded.apiserver.jsontypes import JsonObject, encode
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.patch.patches import MERGE_PATCH, STRATEGIC_PATCH, Patch
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.rest import writing
from bayplan.embedded.apiserver.rest.conforming import conform
from bayplan.embedded.apiserver.rest.metadata import settle_name
from bayplan.embedded.apiserver.subresources.binding import bind
from bayplan.embedded.apiserver.subresources.eviction import evict
from bayplan.embedded.apiserver.subresources.scale import scale_of, with_scale

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


async def _change_scale(exchange: Exchange, wanted: writing.Compute) -> Answer:
    kind = exchange.call.kind

    def rescale(obj: JsonObject) -> JsonObject:
        scale = wanted(scale_of(kind, obj))
        conform(replace(exchange.call, kind=_SCALE), scale)
        return with_scale(kind, obj, scale)

    entry = await writing.change(exchange.backend, exchange.call, rescale, trusted=True)
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

    entry = await writing.change(exchange.backend, exchange.call, settle, trusted=True)
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
