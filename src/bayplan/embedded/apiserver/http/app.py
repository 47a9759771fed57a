"""The ASGI application: authenticates, authorizes and dispatches requests."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, NamedTuple

from bayplan.embedded.apiserver.authorization.escalation import acting_user
from bayplan.embedded.apiserver.authorization.rbac import Attributes, Authorizer
from bayplan.embedded.apiserver.errors import (
    PageNotFound,
    StatusError,
    bad_request,
    forbidden,
    method_not_allowed,
    no_such_path,
    not_found,
    stopping,
    unauthorized,
)
from bayplan.embedded.apiserver.http.endpoints import (
    OPEN_PATHS,
    Endpoints,
    RequestKey,
    RequestMetrics,
)
from bayplan.embedded.apiserver.http.handlers import (
    HANDLERS,
    Answer,
    Handler,
    RequestContext,
    verb_of,
)
from bayplan.embedded.apiserver.http.subresources import (
    Reviews,
    create_binding,
    subresource_handler,
)
from bayplan.embedded.apiserver.http.urls import (
    Query,
    RequestInfo,
    parse_path,
    parse_query,
    write_options,
)
from bayplan.embedded.apiserver.http.wire.bodies import ClientDisconnected, Receive, media_type
from bayplan.embedded.apiserver.http.wire.responses import Send, Stream, error_response, negotiate
from bayplan.embedded.apiserver.identity import Authenticator
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.request import Call, UserInfo
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.selectors import single_name
from bayplan.embedded.apiserver.store.database import StoreError

log = logging.getLogger(__name__)

Scope = dict[str, Any]

_IN_NAMESPACE = ("create", "deletecollection")
"""Verbs that need a namespace for namespaced kinds."""


class ResourceRequest(NamedTuple):
    """A request of an authenticated user about a resource."""

    method: str
    info: RequestInfo
    user: UserInfo
    headers: dict[bytes, bytes]
    query: Query
    receive: Receive
    state: dict[str, Any]


class ApiServerApp:
    """The ASGI application of the server."""

    def __init__(
        self,
        backend: Backend,
        authenticator: Authenticator,
        authorizer: Authorizer,
        endpoints: Endpoints,
        metrics: RequestMetrics,
    ) -> None:
        self._metrics = metrics
        self._backend = backend
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._endpoints = endpoints
        self._reviews = Reviews(authenticator, authorizer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and count it."""
        self._metrics.in_flight += 1
        started = time.perf_counter()
        try:
            answer = await self._safe_answer(scope, receive)
            if answer is not None:
                if self._backend.store.closing:
                    answer.headers.append((b"connection", b"close"))
                self._metrics.count(_label(scope, answer), time.perf_counter() - started)
                if isinstance(answer, Stream):
                    await _stream(answer, send, scope["state"])
                else:
                    await answer.send(send)
        except TimeoutError:
            scope["state"]["abort"]()
        finally:
            self._metrics.in_flight -= 1

    async def _safe_answer(self, scope: Scope, receive: Receive) -> Answer | None:
        """Handle one request; every error becomes a Status."""
        try:
            return await self._answer(scope, receive)
        except StatusError as error:
            return error_response(error)
        except ClientDisconnected:
            return None
        except RecursionError:
            return error_response(bad_request("exceeded max depth"))
        except StoreError:
            return error_response(stopping())  # it is not sent: the data file failed
        except Exception:
            log.exception("request failed: %s %s", scope["method"], scope["path"])
            return error_response(StatusError(500, "InternalError", "Internal error occurred"))

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        info = parse_path(scope["raw_path"])
        user = self._authenticator.authenticate(
            headers.get(b"authorization"), scope["state"].get("peer")
        )
        if user is not None:
            user = acting_user(user, scope["headers"], self._authorizer)
        elif info.path not in OPEN_PATHS:
            raise unauthorized()
        if info.is_resource and user is not None:
            if self._backend.store.closing:
                # Connections that were opened while the others were closed end up here.
                raise stopping()
            query = parse_query(scope["query_string"])
            return await self._resource(
                ResourceRequest(
                    scope["method"], info, user, headers, query, receive, scope["state"]
                )
            )
        self._authorize_path(scope["method"], info.path, user)
        return self._endpoints.answer(scope["method"], info.path, headers.get(b"accept"))

    def _authorize_path(self, method: str, path: str, user: UserInfo | None) -> None:
        if user is None:
            return
        verb = "get" if method == "HEAD" else method.lower()
        decision = self._authorizer.authorize(Attributes(user, verb, path=path))
        if not decision.allowed:
            message = f'forbidden: User "{user.name}" cannot {verb} path "{path}"'
            raise StatusError(403, "Forbidden", message, {})

    async def _resource(self, request: ResourceRequest) -> Answer:
        info = request.info
        verb = verb_of(request.method, info.name, request.query)
        self._authorize(request.user, verb, info, _name(verb, request))
        kind = self._kind(info)
        handler = self._handler(kind, verb, info)
        request.state["resource"] = (kind.group, kind.plural, info.subresource)
        context = self._exchange(request, kind, verb)
        try:
            answer = await handler(context)
        except StatusError as error:  # warnings are sent with errors, too
            answer = error_response(error)
        for warning in context.call.warnings:
            answer.headers.append((b"warning", _warning(warning)))
        return answer

    def _exchange(self, request: ResourceRequest, kind: ServedKind, verb: str) -> RequestContext:
        info, headers = request.info, request.headers
        content_type = headers.get(b"content-type")
        options = write_options(request.query, verb, media_type(content_type))
        call = Call(
            request.user,
            kind,
            info.namespace,
            info.name,
            info.subresource,
            options.dry_run,
            options.field_manager,
            options.field_validation,
            options.force,
            client=_client(headers.get(b"user-agent")),
            patching=verb == "patch",
            may_create=lambda: self._authorize(request.user, "create", info, info.name),
        )
        form = negotiate(headers.get(b"accept"))
        return RequestContext(
            self._backend,
            call,
            verb,
            request.query,
            form,
            content_type,
            request.receive,
            arrived=request.state.get("arrived", False),
        )

    def _authorize(self, user: UserInfo, verb: str, info: RequestInfo, name: str) -> None:
        attributes = Attributes(
            user,
            verb,
            info.group,
            info.plural,
            info.subresource,
            info.name if info.plural == "namespaces" and not info.group else info.namespace,
            name,
        )
        decision = self._authorizer.authorize(attributes)
        if not decision.allowed:
            raise forbidden(info.group, info.plural, info.name, attributes.sentence())

    def _kind(self, info: RequestInfo) -> ServedKind:
        catalog = self._backend.catalog
        kind = catalog.find(info.group, info.version, info.plural)
        if kind is None and info.group not in catalog.groups():
            raise PageNotFound
        if kind is None or (info.namespace and not kind.namespaced):
            raise no_such_path()
        return kind

    def _handler(self, kind: ServedKind, verb: str, info: RequestInfo) -> Handler:
        if kind.namespaced and not info.namespace:
            if info.name:
                raise no_such_path()
            if verb in _IN_NAMESPACE:
                raise method_not_allowed()
        if info.subresource:
            if kind.custom and info.subresource not in kind.subresources:
                raise not_found(kind.group, kind.plural, info.name)
            return subresource_handler(kind, info.subresource, verb)
        needs_name = verb in ("update", "patch")
        if verb not in kind.verbs or (needs_name and not info.name):
            raise method_not_allowed()
        if verb == "create":
            return self._creator(kind, info)
        return HANDLERS[verb]

    def _creator(self, kind: ServedKind, info: RequestInfo) -> Handler:
        if info.name:
            raise method_not_allowed()
        if kind.resource == "bindings":
            return create_binding
        return self._reviews.handler(kind) or HANDLERS["create"]


async def _stream(answer: Stream, send: Send, state: dict[str, Any]) -> None:
    """Send a stream, which may be idle for long and ends when the client disconnects."""
    task, lost = asyncio.current_task(), False

    def end() -> None:
        nonlocal lost
        lost = True
        if task is not None:
            task.cancel()

    state["lost"] = end
    try:
        await answer.send(send)
    except asyncio.CancelledError:
        if not lost or task is None or task.uncancel() > 0:
            raise
    finally:
        state.pop("lost", None)


def _label(scope: Scope, answer: Answer) -> RequestKey:
    """Return the metric labels of a request; only served resources are named."""
    group, resource, subresource = scope["state"].get("resource", ("", "", ""))
    return scope["method"], group, resource, subresource, answer.code


def _client(user_agent: bytes | None) -> str:
    """Return the client's name from its user agent."""
    return (user_agent or b"unknown").split(b"/")[0][:128].decode("latin-1")


def _warning(text: str) -> bytes:
    clean = text.replace("\\", "\\\\").replace('"', '\\"')
    clean = "".join(letter if letter.isprintable() else " " for letter in clean)
    return f'299 - "{clean}"'.encode("latin-1", "replace")


def _name(verb: str, request: ResourceRequest) -> str:
    """Return the object of a request; a list with a field selector for one name counts as one."""
    if verb in ("list", "watch") and not request.info.name:
        return single_name(request.query.get("fieldSelector", ""))
    return request.info.name
