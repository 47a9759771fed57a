"""Calls to admission webhooks: mutating ones in order, validating ones in parallel.

A `WebhookTransport` sends the reviews. `HttpsWebhookTransport` uses the network and verifies the
webhook's CA; `InProcessWebhookTransport` calls ASGI applications of the same process:

InProcessPoster({"https://hooks.example.com": app, "kube-system/admission": app})

A URL key covers every path below it, a service key every request to that service. A webhook that is
in neither is called by the fallback transport, if one is set; in virtual time there is none.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import urlsplit

from bayplan.embedded.apiserver.admission.webhooks.review import (
    BadReviewError,
    MatchedWebhook,
    WebhookConfigurations,
    WebhookResponse,
    admission_review,
    read_response,
)
from bayplan.embedded.apiserver.errors import StatusError, bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone, decode, encode
from bayplan.embedded.apiserver.kinds.catalog import to_served, to_stored
from bayplan.embedded.apiserver.patch.patches import PatchError, apply_json_patch
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, Backend
from bayplan.embedded.apiserver.rest.conformance import conform
from bayplan.embedded.apiserver.rest.metadata import new_uid
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.store import ApiObjectStore
from bayplan.embedded.apiserver.strategies.table import strategy_of
from bayplan.embedded.asgi import App, AsgiRequest, AsgiResponse, ResponseCutShort, call_app

if TYPE_CHECKING:
    import aiohttp

MAX_BYTES = 4 * 1024 * 1024
SECONDS = 10
"""Timeout of a webhook that has none of its own."""


class WebhookCallError(Exception):
    """A webhook that could not be called."""


class WebhookTarget(NamedTuple):
    """The address of a webhook: a URL or a service."""

    url: str = ""
    namespace: str = ""
    service: str = ""
    path: str = ""
    ca_bundle: str | None = None


class WebhookTransport(Protocol):
    """Sends reviews to webhooks."""

    async def post(self, where: WebhookTarget, review: bytes) -> bytes:
        """Return the webhook's response; `WebhookCallError` if there is none."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


async def call_webhook(
    transport: WebhookTransport, hook: JsonObject, review: JsonObject
) -> JsonValue:
    """Return a webhook's response; `WebhookCallError` if there is none before its timeout."""
    where = _where(hook.get("clientConfig") or {})
    try:
        async with asyncio.timeout(hook.get("timeoutSeconds") or SECONDS):
            return decode(await transport.post(where, encode(review)))
    except TimeoutError as problem:
        raise WebhookCallError("context deadline exceeded") from problem
    except (ValueError, RecursionError) as problem:
        raise WebhookCallError(f"{type(problem).__name__}: {problem}") from problem


def _where(config: JsonObject) -> WebhookTarget:
    url, service = config.get("url"), config.get("service")
    if url:
        if not str(url).startswith("https://"):
            raise WebhookCallError("the webhook's URL must begin with https://")
        return WebhookTarget(str(url), ca_bundle=config.get("caBundle"))
    if not service:
        raise WebhookCallError("the webhook has neither a URL nor a service")
    path = "/" + str(service.get("path") or "/").lstrip("/")
    names = (service.get("namespace") or "", service.get("name") or "")
    return WebhookTarget("", *names, path, config.get("caBundle"))


class _Address(NamedTuple):
    """The address to connect to, and the name that its certificate must have."""

    url: str
    server_name: str | None = None


class HttpsWebhookTransport:
    """Sends reviews over HTTPS."""

    def __init__(self, store: ApiObjectStore) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def post(self, where: WebhookTarget, review: bytes) -> bytes:
        """Return the webhook's response; `WebhookCallError` if there is none."""
        import aiohttp  # noqa: PLC0415 - slow to import, needed only where there are webhooks

        if self._session is None:
            self._session = aiohttp.ClientSession()
        address = self._address(where)
        try:
            async with self._session.post(
                address.url,
                data=review,
                headers={"Content-Type": "application/json"},
                ssl=_tls(where.ca_bundle),
                server_hostname=address.server_name,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise WebhookCallError(f"the webhook responded with HTTP {response.status}")
                return await _bounded(response.content)
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            if isinstance(problem, TimeoutError):
                raise
            raise WebhookCallError(f"{type(problem).__name__}: {problem}") from problem

    def _address(self, where: WebhookTarget) -> _Address:
        """Return the first endpoint of a service: there is no cluster network."""
        if where.url:
            return _Address(where.url)
        entry = self._store.get(ObjectKey("endpoints", where.namespace, where.service))
        for subset in (entry.object().get("subsets") or ()) if entry is not None else ():
            for address in subset.get("addresses") or ():
                port = next((one.get("port") for one in subset.get("ports") or ()), 443)
                url = f"https://{address.get('ip')}:{port}{where.path}"
                return _Address(url, f"{where.service}.{where.namespace}.svc")
        raise WebhookCallError(f'service "{where.namespace}/{where.service}" has no endpoints')


async def _bounded(stream: aiohttp.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in stream.iter_any():
        size += len(part)
        if size > MAX_BYTES:
            raise WebhookCallError("the webhook's response is too large")
        parts.append(part)
    return b"".join(parts)


@lru_cache(64)
def _tls(bundle: str | None) -> ssl.SSLContext:
    if not bundle:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=base64.b64decode(bundle).decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, binascii.Error) as problem:
        raise WebhookCallError("the webhook's caBundle is not a certificate") from problem


_HEADERS = (("Content-Type", "application/json"), ("Accept", "application/json"))


class InProcessWebhookTransport:
    """Calls ASGI applications in this process."""

    def __init__(self, apps: Mapping[str, App], otherwise: WebhookTransport | None = None) -> None:
        self._apps = {name.rstrip("/"): app for name, app in apps.items()}
        self._otherwise = otherwise

    async def close(self) -> None:
        """Close the fallback transport."""
        if self._otherwise is not None:
            await self._otherwise.close()

    async def post(self, where: WebhookTarget, review: bytes) -> bytes:
        """Return the webhook's response; `WebhookCallError` if there is none."""
        app = self._find(where)
        if app is None:
            return await self._elsewhere(where, review)
        parts = urlsplit(where.url)
        path = where.path or parts.path or "/"
        request = AsgiRequest("POST", path, parts.query, _HEADERS, review)
        try:
            async with call_app(app, request) as reply:
                return await _read(reply)
        except ResponseCutShort as problem:
            raise WebhookCallError("the webhook did not respond") from problem

    def _find(self, where: WebhookTarget) -> App | None:
        if not where.url:
            return self._apps.get(f"{where.namespace}/{where.service}")
        parts = urlsplit(where.url)
        known = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
        while known not in self._apps and known.count("/") > 2:
            known = known.rpartition("/")[0]
        return self._apps.get(known)

    async def _elsewhere(self, where: WebhookTarget, review: bytes) -> bytes:
        if self._otherwise is None:
            name = where.url or f"service {where.namespace}/{where.service}"
            raise WebhookCallError(f"no application in this process serves {name}")
        return await self._otherwise.post(where, review)


async def _read(reply: AsgiResponse) -> bytes:
    if reply.status != 200:
        raise WebhookCallError(f"the webhook responded with HTTP {reply.status}")
    parts: list[bytes] = []
    while part := await reply.next_chunk():
        parts.append(part)
        if sum(map(len, parts)) > MAX_BYTES:
            raise WebhookCallError("the webhook's response is too large")
    return b"".join(parts)


log = logging.getLogger(__name__)

_GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{_GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{_GROUP}"


class Webhooks:
    """The webhooks of one server."""

    def __init__(self, backend: Backend, transport: WebhookTransport) -> None:
        self._backend = backend
        self._transport = transport
        self._mutating = WebhookConfigurations(backend, MUTATING)
        self._validating = WebhookConfigurations(backend, VALIDATING)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def mutate(self, request: AdmissionRequest) -> None:
        """Call mutating webhooks in order; reinvoke those that want it after later changes."""
        hooks = self._mutating.matching(request)
        if not hooks:
            return
        again: list[MatchedWebhook] = []
        called: list[MatchedWebhook] = []
        for hook in hooks:
            if await self._mutate(request, hook):
                again += [one for one in called if _wants_reinvocation(one) and one not in again]
            called.append(hook)
        for hook in again:
            await self._mutate(request, hook)

    async def validate(self, request: AdmissionRequest) -> None:
        """Call validating webhooks in parallel; the first refusal counts."""
        hooks = self._validating.matching(request)
        if not hooks:
            return
        responses = await asyncio.gather(*(self._call(request, hook) for hook in hooks))
        for hook, response in zip(hooks, responses, strict=True):
            _accept(request, hook, response)

    async def _mutate(self, request: AdmissionRequest, hook: MatchedWebhook) -> bool:
        """Call one webhook and apply its patch; returns whether the object changed."""
        response = await self._call(request, hook)
        _accept(request, hook, response)
        if response is None or not response.patch or request.object is None:
            return False
        before = request.object
        request.object = _patched(request, hook, response)
        return request.object != before

    async def _call(
        self, request: AdmissionRequest, hook: MatchedWebhook
    ) -> WebhookResponse | None:
        """Return a webhook's response; None if the call failed and the failure policy is Ignore."""
        if request.call.dry_run and hook.hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        uid = new_uid(self._backend.rng)
        try:
            review = await call_webhook(
                self._transport, hook.hook, admission_review(request, hook, uid)
            )
            return read_response(review, uid)
        except (WebhookCallError, BadReviewError) as problem:
            if hook.hook.get("failurePolicy") == "Ignore":
                log.warning("webhook %s failed and is ignored: %s", hook.name, problem)
                return None
            raise _failed(hook, problem) from problem


def _wants_reinvocation(hook: MatchedWebhook) -> bool:
    return hook.hook.get("reinvocationPolicy") == "IfNeeded"


def _failed(hook: MatchedWebhook, problem: Exception) -> StatusError:
    message = (
        f'Internal error occurred: failed calling webhook "{hook.name}": '
        f"failed to call webhook: {problem}"
    )
    return StatusError(500, "InternalError", message, {"causes": [{"message": message}]})


def _accept(
    request: AdmissionRequest, hook: MatchedWebhook, response: WebhookResponse | None
) -> None:
    if response is None:
        return
    for warning in response.warnings:
        request.call.warn(warning)
    if not response.allowed:
        message = f'admission webhook "{hook.name}" denied the request'
        explanation = f": {response.message}" if response.message else " without explanation"
        raise StatusError(response.code, response.reason, message + explanation)


def _patched(
    request: AdmissionRequest, hook: MatchedWebhook, response: WebhookResponse
) -> JsonObject:
    shown = to_served(hook.kind, clone(request.object))
    try:
        patched = apply_json_patch(shown, response.patch)
    except (PatchError, RecursionError) as problem:
        raise _failed(hook, problem) from problem
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise _failed(hook, PatchError("the patch does not leave an object with metadata"))
    kept = to_stored(hook.kind, patched)
    if request.call.kind is hook.kind:
        conform(request.call, kept)
    strategy_of(hook.kind.storage).default(kept)
    return kept
