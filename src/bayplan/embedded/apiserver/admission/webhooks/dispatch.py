"""Asking webhooks: those that mutate one after the other, those that validate all at once.

What takes them is a `Poster`: `HttpsPoster` goes over the network, with the webhook's CA; the one
of `inprocess` calls applications of the same process.

InProcessPoster({"https://hooks.example.com": app, "kube-system/admission": app})

A URL stands for everything below it; a service for everything that its clients ask it. Whoever is
not known is asked otherwise, if there is another way; in virtual time there is none.
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
    BadReview,
    Configurations,
    Hook,
    Verdict,
    answer,
    question,
)
from bayplan.embedded.apiserver.errors import ApiError, bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone, decode, encode
from bayplan.embedded.apiserver.kinds.catalog import to_kept, to_shown
from bayplan.embedded.apiserver.patch.patches import PatchError, apply_json_patch
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, Backend
from bayplan.embedded.apiserver.rest.conformance import conform
from bayplan.embedded.apiserver.rest.metadata import new_uid
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.store import Store
from bayplan.embedded.apiserver.strategies.table import strategy_of
from bayplan.embedded.asgi import App, Asked, CutShort, Reply, calling

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES = 4 * 1024 * 1024
SECONDS = 10
"""How long a webhook has that does not say its own time."""


class CallFailed(Exception):  # noqa: N818 - an outcome that callers handle
    """A webhook that could not be asked."""


class Where(NamedTuple):
    """Where a webhook is: at a URL, or behind a service."""

    url: str = ""
    namespace: str = ""
    service: str = ""
    path: str = ""
    ca_bundle: str | None = None


class Poster(Protocol):
    """Takes reviews to webhooks."""

    async def post(self, where: Where, review: bytes) -> bytes:
        """The webhook's answer; `CallFailed` if there is none that can be read."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


async def ask(poster: Poster, hook: JsonObject, review: JsonObject) -> JsonValue:
    """A webhook's answer; `CallFailed` if there is none in its time."""
    where = _where(hook.get("clientConfig") or {})
    try:
        async with asyncio.timeout(hook.get("timeoutSeconds") or SECONDS):
            return decode(await poster.post(where, encode(review)))
    except TimeoutError as problem:
        raise CallFailed("context deadline exceeded") from problem
    except (ValueError, RecursionError) as problem:
        raise CallFailed(f"{type(problem).__name__}: {problem}") from problem


def _where(config: JsonObject) -> Where:
    url, service = config.get("url"), config.get("service")
    if url:
        if not str(url).startswith("https://"):
            raise CallFailed("the webhook's URL must begin with https://")
        return Where(str(url), ca_bundle=config.get("caBundle"))
    if not service:
        raise CallFailed("the webhook has neither a URL nor a service")
    path = "/" + str(service.get("path") or "/").lstrip("/")
    names = (service.get("namespace") or "", service.get("name") or "")
    return Where("", *names, path, config.get("caBundle"))


class _Address(NamedTuple):
    """What to connect to, and the name that its certificate must have."""

    url: str
    server_name: str | None = None


class HttpsPoster:
    """Takes reviews over HTTPS."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Let go of all connections."""
        if self._session is not None:
            await self._session.close()

    async def post(self, where: Where, review: bytes) -> bytes:
        """The webhook's answer; `CallFailed` if there is none that can be read."""
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
                    raise CallFailed(f"the webhook answered with HTTP {response.status}")
                return await _bounded(response.content)
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            if isinstance(problem, TimeoutError):
                raise
            raise CallFailed(f"{type(problem).__name__}: {problem}") from problem

    def _address(self, where: Where) -> _Address:
        """A service's first endpoint: there is no cluster network to go through."""
        if where.url:
            return _Address(where.url)
        entry = self._store.get(Key("endpoints", where.namespace, where.service))
        for subset in (entry.object().get("subsets") or ()) if entry is not None else ():
            for address in subset.get("addresses") or ():
                port = next((one.get("port") for one in subset.get("ports") or ()), 443)
                url = f"https://{address.get('ip')}:{port}{where.path}"
                return _Address(url, f"{where.service}.{where.namespace}.svc")
        raise CallFailed(f'service "{where.namespace}/{where.service}" has no endpoints')


async def _bounded(stream: aiohttp.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in stream.iter_any():
        size += len(part)
        if size > MOST_BYTES:
            raise CallFailed("the webhook's answer is too large")
        parts.append(part)
    return b"".join(parts)


@lru_cache(64)
def _tls(bundle: str | None) -> ssl.SSLContext:
    if not bundle:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=base64.b64decode(bundle).decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, binascii.Error) as problem:
        raise CallFailed("the webhook's caBundle is not a certificate") from problem


_HEADERS = (("Content-Type", "application/json"), ("Accept", "application/json"))


class InProcessPoster:
    """Takes reviews to applications in this process."""

    def __init__(self, apps: Mapping[str, App], otherwise: Poster | None = None) -> None:
        self._apps = {name.rstrip("/"): app for name, app in apps.items()}
        self._otherwise = otherwise

    async def close(self) -> None:
        """Let go of what the other way holds."""
        if self._otherwise is not None:
            await self._otherwise.close()

    async def post(self, where: Where, review: bytes) -> bytes:
        """The webhook's answer; `CallFailed` if there is none that can be read."""
        app = self._find(where)
        if app is None:
            return await self._elsewhere(where, review)
        parts = urlsplit(where.url)
        path = where.path or parts.path or "/"
        asked = Asked("POST", path, parts.query, _HEADERS, review)
        try:
            async with calling(app, asked) as reply:
                return await _read(reply)
        except CutShort as problem:
            raise CallFailed("the webhook did not answer") from problem

    def _find(self, where: Where) -> App | None:
        if not where.url:
            return self._apps.get(f"{where.namespace}/{where.service}")
        parts = urlsplit(where.url)
        known = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
        while known not in self._apps and known.count("/") > 2:
            known = known.rpartition("/")[0]
        return self._apps.get(known)

    async def _elsewhere(self, where: Where, review: bytes) -> bytes:
        if self._otherwise is None:
            name = where.url or f"service {where.namespace}/{where.service}"
            raise CallFailed(f"nothing in this process answers for {name}")
        return await self._otherwise.post(where, review)


async def _read(reply: Reply) -> bytes:
    if reply.status != 200:
        raise CallFailed(f"the webhook answered with HTTP {reply.status}")
    parts: list[bytes] = []
    while part := await reply.next_chunk():
        parts.append(part)
        if sum(map(len, parts)) > MOST_BYTES:
            raise CallFailed("the webhook's answer is too large")
    return b"".join(parts)


log = logging.getLogger(__name__)

_GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{_GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{_GROUP}"


class Webhooks:
    """The webhooks of one server."""

    def __init__(self, backend: Backend, poster: Poster) -> None:
        self._backend = backend
        self._poster = poster
        self._mutating = Configurations(backend, MUTATING)
        self._validating = Configurations(backend, VALIDATING)

    async def close(self) -> None:
        """Let go of all connections."""
        await self._poster.close()

    async def mutate(self, request: AdmissionRequest) -> None:
        """Ask mutating webhooks in order; those that wish are asked again after later changes."""
        hooks = self._mutating.matching(request)
        if not hooks:
            return
        again: list[Hook] = []
        asked: list[Hook] = []
        for hook in hooks:
            if await self._mutate(request, hook):
                again += [one for one in asked if _wants_again(one) and one not in again]
            asked.append(hook)
        for hook in again:
            await self._mutate(request, hook)

    async def validate(self, request: AdmissionRequest) -> None:
        """Ask validating webhooks all at once; the first refusal counts."""
        hooks = self._validating.matching(request)
        if not hooks:
            return
        verdicts = await asyncio.gather(*(self._ask(request, hook) for hook in hooks))
        for hook, verdict in zip(hooks, verdicts, strict=True):
            _accept(request, hook, verdict)

    async def _mutate(self, request: AdmissionRequest, hook: Hook) -> bool:
        """Ask one webhook and carry out its patch; says whether the object changed."""
        verdict = await self._ask(request, hook)
        _accept(request, hook, verdict)
        if verdict is None or not verdict.patch or request.object is None:
            return False
        before = request.object
        request.object = _patched(request, hook, verdict)
        return request.object != before

    async def _ask(self, request: AdmissionRequest, hook: Hook) -> Verdict | None:
        """A webhook's verdict; None if it could not be asked and that does not matter."""
        if request.call.dry_run and hook.hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        uid = new_uid(self._backend.rng)
        try:
            review = await ask(self._poster, hook.hook, question(request, hook, uid))
            return answer(review, uid)
        except (CallFailed, BadReview) as problem:
            if hook.hook.get("failurePolicy") == "Ignore":
                log.warning("webhook %s failed and is ignored: %s", hook.name, problem)
                return None
            raise _failed(hook, problem) from problem


def _wants_again(hook: Hook) -> bool:
    return hook.hook.get("reinvocationPolicy") == "IfNeeded"


def _failed(hook: Hook, problem: Exception) -> ApiError:
    message = (
        f'Internal error occurred: failed calling webhook "{hook.name}": '
        f"failed to call webhook: {problem}"
    )
    return ApiError(500, "InternalError", message, {"causes": [{"message": message}]})


def _accept(request: AdmissionRequest, hook: Hook, verdict: Verdict | None) -> None:
    if verdict is None:
        return
    for warning in verdict.warnings:
        request.call.warn(warning)
    if not verdict.allowed:
        message = f'admission webhook "{hook.name}" denied the request'
        told = f": {verdict.message}" if verdict.message else " without explanation"
        raise ApiError(verdict.code, verdict.reason, message + told)


def _patched(request: AdmissionRequest, hook: Hook, verdict: Verdict) -> JsonObject:
    shown = to_shown(hook.kind, clone(request.object))
    try:
        patched = apply_json_patch(shown, verdict.patch)
    except (PatchError, RecursionError) as problem:
        raise _failed(hook, problem) from problem
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise _failed(hook, PatchError("the patch does not leave an object with metadata"))
    kept = to_kept(hook.kind, patched)
    if request.call.kind is hook.kind:
        conform(request.call, kept)
    strategy_of(hook.kind.storage).default(kept)
    return kept
