"""The ASGI application: who asks, may they, and then what they asked for."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, NamedTuple

from bayplan.embedded.apiserver.authorization.escalation import acting_user
from bayplan.embedded.apiserver.authorization.rbac import Attributes, Authorizer
from bayplan.embedded.apiserver.errors import (
    ApiError,
    PageNotFound,
    bad_request,
    forbidden,
    method_not_allowed,
    no_such_path,
    not_found,
    stopping,
    unauthorized,
)
from bayplan.embedded.apiserver.http.endpoints import OPEN_PATHS, Endpoints, Metrics, RequestKey
from bayplan.embedded.apiserver.http.handlers import HANDLERS, Answer, Exchange, Handler, verb_of
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
from bayplan.embedded.apiserver.http.wire.bodies import Disconnected, Receive, media_type
from bayplan.embedded.apiserver.http.wire.responses import Send, Stream, error_response, negotiate
from bayplan.embedded.apiserver.identity import Authenticator
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.request import Call, User
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.selectors import the_one_name
from bayplan.embedded.apiserver.store.database import StoreError

log = logging.getLogger(__name__)

Scope = dict[str, Any]

_IN_NAMESPACE = ("create", "deletecollection")
"""What can be done to namespaced kinds in one namespace only."""


class Incoming(NamedTuple):
    """A request about a resource, by somebody known."""

    method: str
    info: RequestInfo
    user: User
    headers: dict[bytes, bytes]
    query: Query
    receive: Receive
    state: dict[str, Any]


class App:
    """Answers every request of every client."""

    def __init__(
        self,
        backend: Backend,
        authenticator: Authenticator,
        authorizer: Authorizer,
        endpoints: Endpoints,
        metrics: Metrics,
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
        """Answer one request; whatever goes wrong becomes a Status."""
        try:
            return await self._answer(scope, receive)
        except ApiError as error:
            return error_response(error)
        except Disconnected:
            return None
        except RecursionError:
            return error_response(bad_request("exceeded max depth"))
        except StoreError:
            return error_response(stopping())  # which nobody gets: nothing is sent any more
        except Exception:
            log.exception("request failed: %s %s", scope["method"], scope["path"])
            return error_response(ApiError(500, "InternalError", "Internal error occurred"))

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
                # Connections that were being made while the others were cut end up here.
                raise stopping()
            query = parse_query(scope["query_string"])
            return await self._resource(
                Incoming(scope["method"], info, user, headers, query, receive, scope["state"])
            )
        self._authorize_path(scope["method"], info.path, user)
        return self._endpoints.answer(scope["method"], info.path, headers.get(b"accept"))

    def _authorize_path(self, method: str, path: str, user: User | None) -> None:
        if user is None:
            return
        verb = "get" if method == "HEAD" else method.lower()
        decision = self._authorizer.authorize(Attributes(user, verb, path=path))
        if not decision.allowed:
            message = f'forbidden: User "{user.name}" cannot {verb} path "{path}"'
            raise ApiError(403, "Forbidden", message, {})

    async def _resource(self, incoming: Incoming) -> Answer:
        info = incoming.info
        verb = verb_of(incoming.method, info.name, incoming.query)
        self._authorize(incoming.user, verb, info, _name(verb, incoming))
        kind = self._kind(info)
        handler = self._handler(kind, verb, info)
        incoming.state["resource"] = (kind.group, kind.plural, info.subresource)
        exchange = self._exchange(incoming, kind, verb)
        try:
            answer = await handler(exchange)
        except ApiError as error:  # what was noticed on the way is told all the same
            answer = error_response(error)
        for warning in exchange.call.warnings:
            answer.headers.append((b"warning", _warning(warning)))
        return answer

    def _exchange(self, incoming: Incoming, kind: Kind, verb: str) -> Exchange:
        info, headers = incoming.info, incoming.headers
        content_type = headers.get(b"content-type")
        options = write_options(incoming.query, verb, media_type(content_type))
        call = Call(
            incoming.user,
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
            may_create=lambda: self._authorize(incoming.user, "create", info, info.name),
        )
        form = negotiate(headers.get(b"accept"))
        return Exchange(
            self._backend,
            call,
            verb,
            incoming.query,
            form,
            content_type,
            incoming.receive,
            arrived=incoming.state.get("arrived", False),
        )

    def _authorize(self, user: User, verb: str, info: RequestInfo, name: str) -> None:
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

    def _kind(self, info: RequestInfo) -> Kind:
        catalog = self._backend.catalog
        kind = catalog.find(info.group, info.version, info.plural)
        if kind is None and info.group not in catalog.groups():
            raise PageNotFound
        if kind is None or (info.namespace and not kind.namespaced):
            raise no_such_path()
        return kind

    def _handler(self, kind: Kind, verb: str, info: RequestInfo) -> Handler:
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

    def _creator(self, kind: Kind, info: RequestInfo) -> Handler:
        if info.name:
            raise method_not_allowed()
        if kind.resource == "bindings":
            return create_binding
        return self._reviews.handler(kind) or HANDLERS["create"]


async def _stream(answer: Stream, send: Send, state: dict[str, Any]) -> None:
    """Send a stream, which may be silent for long and ends when its reader is gone."""
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
    """What an answered request is counted under; only what was served names a resource."""
    group, resource, subresource = scope["state"].get("resource", ("", "", ""))
    return scope["method"], group, resource, subresource, answer.code


def _client(user_agent: bytes | None) -> str:
    """The client's name, as its user agent says it."""
    return (user_agent or b"unknown").split(b"/")[0][:128].decode("latin-1")


def _warning(text: str) -> bytes:
    clean = text.replace("\\", "\\\\").replace('"', '\\"')
    clean = "".join(letter if letter.isprintable() else " " for letter in clean)
    return f'299 - "{clean}"'.encode("latin-1", "replace")


def _name(verb: str, incoming: Incoming) -> str:
    """The object that a request is about; whoever may see one may select it among all."""
    if verb in ("list", "watch") and not incoming.info.name:
        return the_one_name(incoming.query.get("fieldSelector", ""))
    return incoming.info.name
