"""One handler for each verb: from a parsed request to a response."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from msgspec.structs import replace

from bayplan.embedded.apiserver.errors import (
    StatusError,
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
    BodyTooDeep,
    Receive,
    UnreadableBody,
    collect,
    decode_value,
    exact_media_type,
    media_type,
    read_body,
)
from bayplan.embedded.apiserver.http.wire.responses import Response, ResponseFormat, Stream
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.patch.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MAX_OPERATIONS,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    PatchRequest,
    accepted,
    patch_type_problem,
    repeated,
)
from bayplan.embedded.apiserver.request import Call, DeletionOptions
from bayplan.embedded.apiserver.rest import deletion, writes
from bayplan.embedded.apiserver.rest.backend import Backend, create_request_key
from bayplan.embedded.apiserver.rest.conformance import conform, undecodable
from bayplan.embedded.apiserver.rest.reads import Watcher, list_page, parse_version
from bayplan.embedded.apiserver.schema import unmarshal
from bayplan.embedded.apiserver.schema.typecheck import TypeCheck, TypeMismatch, check_object
from bayplan.embedded.apiserver.schema.types import require_type


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request about a resource, and the dependencies of its handler."""

    backend: Backend
    call: Call
    verb: str
    query: Query
    form: ResponseFormat
    content_type: bytes | None
    receive: Receive
    arrived: bool = False
    """Whether the whole body has been received."""

    def renderer(self) -> Renderer:
        """Return the renderer for the client's format."""
        return Renderer(self.call.kind, self.form, self.query, self.backend.clock)

    async def body(self) -> bytes:
        """Return the request's body."""
        return await (collect if self.arrived else read_body)(self.receive)


Answer = Response | Stream


async def read_object(context: RequestContext, kind: ServedKind | None = None) -> JsonObject:
    """Decode the body as an object of the resource's kind, or of another one."""
    return _decoded(context, await context.body(), kind or context.call.kind)


def _decoded(context: RequestContext, body: bytes, kind: ServedKind) -> JsonObject:
    media = media_type(context.content_type)
    return bodies.read_object(body, media, kind, context.backend.catalog)


def conformed(context: RequestContext, body: bytes, kind: ServedKind | None = None) -> JsonObject:
    """Decode and validate the body as an object of the resource's kind, or of another one."""
    call = context.call if kind is None else replace(context.call, kind=kind)
    obj = _decoded(context, body, call.kind)
    is_json = media_type(context.content_type) in ("", "application/json")
    conform(call, obj, body=body if is_json else b"")
    return obj


async def get(context: RequestContext) -> Answer:
    """Get one object."""
    parse_version(context.query.get("resourceVersion", ""))
    return context.renderer().one(context.backend.require(context.call))


async def list_(context: RequestContext) -> Answer:
    """List objects."""
    call, query = context.call, context.query
    select = selector(query, call.kind, call.namespace)
    page = list_page(context.backend.store, call.kind.storage, select, list_options(query))
    return context.renderer().page(page)


async def watch(context: RequestContext) -> Answer:
    """Watch objects."""
    call, query = context.call, context.query
    options = watch_options(query, selector(query, call.kind, call.namespace, call.name))
    options.render = context.renderer().for_watch()
    loop = asyncio.get_running_loop()
    started = Watcher(context.backend.store, call.kind, options, loop.time)
    return Stream(started.chunks(), context.form.content_type)


async def create(context: RequestContext) -> Answer:
    """Create an object."""
    backend, call, body = context.backend, context.call, await context.body()
    wording = create_request_key(call, media_type(context.content_type), body)
    obj = backend.templates.find(wording)
    if obj is None:
        obj = conformed(context, body)
        backend.templates.keep(wording, call, obj)
    entry = await writes.create(backend, call, obj, trusted=True)
    return context.renderer().one(entry, 201)


async def update(context: RequestContext) -> Answer:
    """Replace an object."""
    obj = conformed(context, await context.body())
    entry, created = await writes.update(context.backend, context.call, obj, trusted=True)
    code = 201 if created else 200
    return context.renderer().one(entry, code)


async def read_patch(context: RequestContext) -> tuple[Call, PatchRequest]:
    """Decode the body as a patch; returns also the call with the patch for errors."""
    call, kind = context.call, exact_media_type(context.content_type)
    body = await context.body()
    allowed = accepted(call.kind)
    if kind not in allowed:
        raise unsupported_media_type(allowed)
    if kind != APPLY_PATCH:
        context.backend.require(call)
    content = _patch_content(call, kind, body)
    duplicates = () if kind == APPLY_PATCH else repeated(kind, body, content)
    strategic = content if kind == STRATEGIC_PATCH else None
    return replace(call, strategic=strategic, repeated=duplicates), PatchRequest(
        kind, content, call.kind
    )


def _patch_content(call: Call, kind: str, body: bytes) -> JsonValue:
    what = {APPLY_PATCH: "error decoding YAML: ", STRATEGIC_PATCH: ""}.get(kind, "")
    if kind in (JSON_PATCH, MERGE_PATCH) and call.field_validation != "Ignore":
        what = "error decoding patch: "
    try:
        encoding = "application/yaml" if kind == APPLY_PATCH else "application/json"
        content = decode_value(body, encoding)
    except BodyTooDeep as problem:
        raise undecodable(call, {}, str(problem)) from problem
    except UnreadableBody as problem:
        raise bad_request(f"{what}{problem}") from problem
    found = patch_type_problem(kind, content)
    if found:
        inner = "error unmarshaling JSON: while decoding JSON: " if kind == APPLY_PATCH else ""
        raise bad_request(f"{what}{inner}{found}")
    if kind == JSON_PATCH and content and len(content) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}"
        raise StatusError(413, "RequestEntityTooLarge", f"{message}, got {len(content)}")
    if content is None and kind == MERGE_PATCH:
        raise bad_request("Invalid JSON Patch")
    return ([] if kind == JSON_PATCH else {}) if content is None else content


async def patch(context: RequestContext) -> Answer:
    """Patch an object."""
    call, change = await read_patch(context)
    if change.media_type == APPLY_PATCH:
        entry, created = await writes.apply(context.backend, call, change.content)
        return context.renderer().one(entry, 201 if created else 200)
    entry = await writes.change(context.backend, call, change.on)
    return context.renderer().one(entry)


async def _deletion(context: RequestContext) -> tuple[Call, DeletionOptions]:
    """Return the call and the options of a delete; a body overrides the query."""
    raw = await context.body()
    body = _delete_body(context, raw) if raw else None
    return with_options(context.call, delete_options(context.query, body))


def _delete_body(context: RequestContext, raw: bytes) -> JsonObject:
    try:
        body = bodies.typed(decode_value(raw, media_type(context.content_type)))
    except UnreadableBody as problem:
        message = f"couldn't get version/kind; json parse error: {problem}"
        raise bad_request(message) from problem
    kind, version = body.get("kind") or "DeleteOptions", body.get("apiVersion") or "meta.k8s.io/v1"
    if kind != "DeleteOptions":
        scheme = "pkg/apis/meta/internalversion/scheme/register.go:27"
        message = f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"'
        raise bad_request(message)
    type_ = require_type("meta.DeleteOptions")
    try:
        check_object(body, type_, TypeCheck([], whole=False))
    except (TypeMismatch, RecursionError) as problem:
        raise bad_request(unmarshal.problem(body, type_) or str(problem)) from problem
    return body


def with_options(call: Call, options: DeletionOptions) -> tuple[Call, DeletionOptions]:
    """Return the call of a delete whose body may ask for a dry run."""
    return (replace(call, dry_run=True) if options.dry_run else call), options


async def delete(context: RequestContext) -> Answer:
    """Delete an object."""
    call, options = await _deletion(context)
    deleted = await deletion.delete(context.backend, call, options)
    return context.renderer().deleted(deleted)


async def delete_collection(context: RequestContext) -> Answer:
    """Delete the selected objects."""
    query, backend = context.query, context.backend
    call, options = await _deletion(context)
    select = selector(query, call.kind, call.namespace)
    page = list_page(backend.store, call.kind.storage, select, list_options(query))
    for number, entry in enumerate(page.entries, 1):
        if number % _YIELD_AFTER == 0:
            await asyncio.sleep(0)
        one = Call(call.user, call.kind, entry.key.namespace, entry.key.name, dry_run=call.dry_run)
        try:
            await deletion.delete(backend, one, options)
        except StatusError as error:
            if error.code != 404:
                raise
    return context.renderer().page(page)


_YIELD_AFTER = 16
"""Number of deletions after which the event loop runs other tasks."""

Handler = Callable[[RequestContext], Awaitable[Answer]]

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
    """Return the verb of a request, as RBAC names it."""
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
