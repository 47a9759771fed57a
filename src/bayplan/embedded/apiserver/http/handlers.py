"""One function for each verb: from a parsed request to an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from bayplan.embedded.apiserver.errors import (
    ApiError,
    bad_request,
    method_not_allowed,
    unsupported_media_type,
)
from bayplan.embedded.apiserver.http.query import (
    Query,
    delete_options,
    flag,
    list_options,
    selector,
    watch_options,
)
from bayplan.embedded.apiserver.http.render import Renderer
from bayplan.embedded.apiserver.http.wire.bodies import (
    Receive,
    collect,
    decode_value,
    media_type,
    read_body,
    refuse_duplicates,
    require_object,
)
from bayplan.embedded.apiserver.http.wire.negotiation import Form
from bayplan.embedded.apiserver.http.wire.responses import Response, Stream
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.patch.patches import APPLY_PATCH, Patch, accepted
from bayplan.embedded.apiserver.request import Call, DeleteOptions
from bayplan.embedded.apiserver.rest import applying, deleting, writing
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.conforming import conform
from bayplan.embedded.apiserver.rest.listing import list_page
from bayplan.embedded.apiserver.rest.templates import wording_of
from bayplan.embedded.apiserver.rest.watching import Watch


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request about a resource, and what is needed to answer it."""

    backend: Backend
    call: Call
    verb: str
    query: Query
    form: Form
    content_type: bytes | None
    receive: Receive
    arrived: bool = False
    """Whether the whole body is here already."""

    def renderer(self) -> Renderer:
        """Writes the answer as the client wants it."""
        return Renderer(self.call.kind, self.form, self.query, self.backend.clock)

    async def body(self) -> bytes:
        """The request's body."""
        return await (collect if self.arrived else read_body)(self.receive)


Answer = Response | Stream


async def read_object(exchange: Exchange) -> JsonObject:
    """The body, as a JSON object."""
    return _decoded(exchange, await exchange.body())


def _decoded(exchange: Exchange, body: bytes) -> JsonObject:
    kind = media_type(exchange.content_type)
    obj = require_object(decode_value(body, kind))
    if exchange.call.field_validation == "Strict" and kind.endswith("json"):
        refuse_duplicates(body)
    return obj


async def _object(exchange: Exchange) -> JsonObject:
    obj = await read_object(exchange)
    _check_type(exchange.call, obj)
    return obj


def _check_type(call: Call, obj: JsonObject) -> None:
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(obj.get("metadata", {}), dict | None):
        raise bad_request("metadata must be an object")
    if kind in (None, "") and api_version in (None, ""):
        return
    if (kind, api_version) != (call.kind.kind, call.kind.api_version):
        raise bad_request(
            f"{kind} in version {api_version} cannot be handled as a {call.kind.kind} in version "
            f"{call.kind.api_version}"
        )


async def get(exchange: Exchange) -> Answer:
    """One object."""
    return exchange.renderer().one(exchange.backend.require(exchange.call))


async def list_(exchange: Exchange) -> Answer:
    """Many objects."""
    call, query = exchange.call, exchange.query
    select = selector(query, call.kind, call.namespace)
    page = list_page(exchange.backend.store, call.kind.storage, select, list_options(query))
    return exchange.renderer().page(page)


async def watch(exchange: Exchange) -> Answer:
    """Objects as they change."""
    call, query = exchange.call, exchange.query
    options = watch_options(query, selector(query, call.kind, call.namespace, call.name))
    options.render = exchange.renderer().for_watch()
    loop = asyncio.get_running_loop()
    started = Watch(exchange.backend.store, call.kind, options, loop.time)
    return Stream(started.chunks(), exchange.form.content_type)


async def create(exchange: Exchange) -> Answer:
    """A new object."""
    backend, call, body = exchange.backend, exchange.call, await exchange.body()
    wording = wording_of(call, media_type(exchange.content_type), body)
    obj = backend.templates.find(wording)
    if obj is None:
        obj = _decoded(exchange, body)
        _check_type(call, obj)
        conform(call, obj)
        backend.templates.keep(wording, call, obj)
    entry = await writing.create(backend, call, obj, trusted=True)
    return exchange.renderer().one(entry, 201)


async def update(exchange: Exchange) -> Answer:
    """An object replaced."""
    obj = await _object(exchange)
    entry, created = await writing.update(exchange.backend, exchange.call, obj)
    code = 201 if created else 200
    return exchange.renderer().one(entry, code)


async def read_patch(exchange: Exchange) -> Patch:
    """The body, as a patch."""
    kind = media_type(exchange.content_type)
    body = await exchange.body()
    allowed = accepted(exchange.call.kind)
    if kind not in allowed:
        raise unsupported_media_type(allowed)
    encoding = "application/yaml" if kind.endswith("+yaml") else "application/json"
    return Patch(kind, decode_value(body, encoding), exchange.call.kind)


async def patch(exchange: Exchange) -> Answer:
    """An object changed."""
    change = await read_patch(exchange)
    if change.media_type == APPLY_PATCH:
        entry, created = await applying.apply(exchange.backend, exchange.call, change.content)
        return exchange.renderer().one(entry, 201 if created else 200)
    entry = await writing.change(exchange.backend, exchange.call, change.on)
    return exchange.renderer().one(entry)


async def _deletion(exchange: Exchange) -> tuple[Call, DeleteOptions]:
    """What is to be deleted, and how: the body may say more than the query."""
    raw = await exchange.body()
    body = require_object(decode_value(raw, media_type(exchange.content_type))) if raw else {}
    return with_options(exchange.call, delete_options(exchange.query, body))


def with_options(call: Call, options: DeleteOptions) -> tuple[Call, DeleteOptions]:
    """A deletion whose options were in its body, which may have asked for a dry run."""
    return (replace(call, dry_run=True) if options.dry_run else call), options


async def delete(exchange: Exchange) -> Answer:
    """An object gone, or going."""
    call, options = await _deletion(exchange)
    deleted = await deleting.delete(exchange.backend, call, options)
    return exchange.renderer().deleted(deleted)


async def delete_collection(exchange: Exchange) -> Answer:
    """Many objects gone, or going."""
    query, backend = exchange.query, exchange.backend
    call, options = await _deletion(exchange)
    select = selector(query, call.kind, call.namespace)
    page = list_page(backend.store, call.kind.storage, select, list_options(query))
    for entry in page.entries:
        one = Call(call.user, call.kind, entry.key.namespace, entry.key.name, dry_run=call.dry_run)
        try:
            await deleting.delete(backend, one, options)
        except ApiError as error:
            if error.code != 404:
                raise
    return exchange.renderer().page(page)


Handler = Callable[[Exchange], Awaitable[Answer]]

HANDLERS: dict[str, Handler] = {
    "get": get,
    "list": list_,
    "watch": watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}


def verb_of(method: str, name: str, query: Query) -> str:
    """What a request does, as RBAC names it."""
    if method in ("GET", "HEAD"):
        if flag(query, "watch"):
            return "watch"
        return "get" if name else "list"
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method)
    if verb is None:
        raise method_not_allowed()
    return verb
