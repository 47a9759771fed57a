"""One function for each verb: from a parsed request to an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from msgspec.structs import replace

from bayplan.embedded.apiserver.errors import (
    ApiError,
    bad_request,
    method_not_allowed,
    unsupported_media_type,
)
from bayplan.embedded.apiserver.http.render import Renderer
from bayplan.embedded.apiserver.http.urls import (
    Query,
    delete_options,
    flag,
    list_options,
    selector,
    watch_options,
)
from bayplan.embedded.apiserver.http.wire import bodies
from bayplan.embedded.apiserver.http.wire.bodies import (
    Receive,
    TooDeep,
    Unreadable,
    collect,
    decode_value,
    exact_media_type,
    media_type,
    read_body,
)
from bayplan.embedded.apiserver.http.wire.responses import Form, Response, Stream
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.patch.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    MOST_OPERATIONS,
    STRATEGIC_PATCH,
    Patch,
    accepted,
    repeated,
    shape_problem,
)
from bayplan.embedded.apiserver.request import Call, DeleteOptions
from bayplan.embedded.apiserver.rest import deletion, writes
from bayplan.embedded.apiserver.rest.backend import Backend, wording_of
from bayplan.embedded.apiserver.rest.conformance import conform, undecodable
from bayplan.embedded.apiserver.rest.reads import Watch, list_page, parse_version
from bayplan.embedded.apiserver.schema import unmarshal
from bayplan.embedded.apiserver.schema.checking import Mismatch, Report, check_object
from bayplan.embedded.apiserver.schema.types import require_type


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


async def read_object(exchange: Exchange, kind: Kind | None = None) -> JsonObject:
    """The body, as an object of the resource's kind or of another one that it is sent."""
    return _decoded(exchange, await exchange.body(), kind or exchange.call.kind)


def _decoded(exchange: Exchange, body: bytes, kind: Kind) -> JsonObject:
    media = media_type(exchange.content_type)
    return bodies.read_object(body, media, kind, exchange.backend.catalog)


def conformed(exchange: Exchange, body: bytes, kind: Kind | None = None) -> JsonObject:
    """The body, as an object of the resource's kind (or of another one) that has its shape."""
    call = exchange.call if kind is None else replace(exchange.call, kind=kind)
    obj = _decoded(exchange, body, call.kind)
    is_json = media_type(exchange.content_type) in ("", "application/json")
    conform(call, obj, body=body if is_json else b"")
    return obj


async def get(exchange: Exchange) -> Answer:
    """One object."""
    parse_version(exchange.query.get("resourceVersion", ""))
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
        obj = conformed(exchange, body)
        backend.templates.keep(wording, call, obj)
    entry = await writes.create(backend, call, obj, trusted=True)
    return exchange.renderer().one(entry, 201)


async def update(exchange: Exchange) -> Answer:
    """An object replaced."""
    obj = conformed(exchange, await exchange.body())
    entry, created = await writes.update(exchange.backend, exchange.call, obj, trusted=True)
    code = 201 if created else 200
    return exchange.renderer().one(entry, code)


async def read_patch(exchange: Exchange) -> tuple[Call, Patch]:
    """The body, as a patch; and the request, with what complaints about it need."""
    call, kind = exchange.call, exact_media_type(exchange.content_type)
    body = await exchange.body()
    allowed = accepted(call.kind)
    if kind not in allowed:
        raise unsupported_media_type(allowed)
    if kind != APPLY_PATCH:
        exchange.backend.require(call)
    content = _patch_content(call, kind, body)
    said = () if kind == APPLY_PATCH else repeated(kind, body, content)
    strategic = content if kind == STRATEGIC_PATCH else None
    return replace(call, strategic=strategic, repeated=said), Patch(kind, content, call.kind)


def _patch_content(call: Call, kind: str, body: bytes) -> JsonValue:
    what = {APPLY_PATCH: "error decoding YAML: ", STRATEGIC_PATCH: ""}.get(kind, "")
    if kind in (JSON_PATCH, MERGE_PATCH) and call.field_validation != "Ignore":
        what = "error decoding patch: "
    try:
        encoding = "application/yaml" if kind == APPLY_PATCH else "application/json"
        content = decode_value(body, encoding)
    except TooDeep as problem:
        raise undecodable(call, {}, str(problem)) from problem
    except Unreadable as problem:
        raise bad_request(f"{what}{problem}") from problem
    found = shape_problem(kind, content)
    if found:
        inner = "error unmarshaling JSON: while decoding JSON: " if kind == APPLY_PATCH else ""
        raise bad_request(f"{what}{inner}{found}")
    if kind == JSON_PATCH and content and len(content) > MOST_OPERATIONS:
        told = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}"
        raise ApiError(413, "RequestEntityTooLarge", f"{told}, got {len(content)}")
    if content is None and kind == MERGE_PATCH:
        raise bad_request("Invalid JSON Patch")
    return ([] if kind == JSON_PATCH else {}) if content is None else content


async def patch(exchange: Exchange) -> Answer:
    """An object changed."""
    call, change = await read_patch(exchange)
    if change.media_type == APPLY_PATCH:
        entry, created = await writes.apply(exchange.backend, call, change.content)
        return exchange.renderer().one(entry, 201 if created else 200)
    entry = await writes.change(exchange.backend, call, change.on)
    return exchange.renderer().one(entry)


async def _deletion(exchange: Exchange) -> tuple[Call, DeleteOptions]:
    """What is to be deleted, and how; a body says it instead of the query."""
    raw = await exchange.body()
    body = _delete_body(exchange, raw) if raw else None
    return with_options(exchange.call, delete_options(exchange.query, body))


def _delete_body(exchange: Exchange, raw: bytes) -> JsonObject:
    try:
        body = bodies.typed(decode_value(raw, media_type(exchange.content_type)))
    except Unreadable as problem:
        told = f"couldn't get version/kind; json parse error: {problem}"
        raise bad_request(told) from problem
    kind, version = body.get("kind") or "DeleteOptions", body.get("apiVersion") or "meta.k8s.io/v1"
    if kind != "DeleteOptions":
        scheme = "pkg/apis/meta/internalversion/scheme/register.go:27"
        told = f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"'
        raise bad_request(told)
    type_ = require_type("meta.DeleteOptions")
    try:
        check_object(body, type_, Report([], whole=False))
    except (Mismatch, RecursionError) as problem:
        raise bad_request(unmarshal.problem(body, type_) or str(problem)) from problem
    return body


def with_options(call: Call, options: DeleteOptions) -> tuple[Call, DeleteOptions]:
    """A deletion whose options were in its body, which may have asked for a dry run."""
    return (replace(call, dry_run=True) if options.dry_run else call), options


async def delete(exchange: Exchange) -> Answer:
    """An object gone, or going."""
    call, options = await _deletion(exchange)
    deleted = await deletion.delete(exchange.backend, call, options)
    return exchange.renderer().deleted(deleted)


async def delete_collection(exchange: Exchange) -> Answer:
    """Many objects gone, or going."""
    query, backend = exchange.query, exchange.backend
    call, options = await _deletion(exchange)
    select = selector(query, call.kind, call.namespace)
    page = list_page(backend.store, call.kind.storage, select, list_options(query))
    for number, entry in enumerate(page.entries, 1):
        if number % _BREATH == 0:
            await asyncio.sleep(0)
        one = Call(call.user, call.kind, entry.key.namespace, entry.key.name, dry_run=call.dry_run)
        try:
            await deletion.delete(backend, one, options)
        except ApiError as error:
            if error.code != 404:
                raise
    return exchange.renderer().page(page)


_BREATH = 16
"""Deletions after which others get a turn."""

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
