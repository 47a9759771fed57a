"""The client: every verb of the API, for typed kinds and for any other.

    async with connect() as client:
        pod = await client.get(Pod, "shop", "web-0")
        nodes = await client.list(Node, labels="zone=a")
        await client.patch(Node, "n1", change=merge({"metadata": {"labels": {"zone": "b"}}}))
        await client.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {...}})

A kind is named by its type, or by a `Resource`. An object is named by namespace and name, or by its
name alone if it is cluster-scoped. Responses are checked and typed, refusals are exceptions
(`bayplan.client.errors`), and every request is under the client's rate, time and size limits.
Requests are sent by a `Transport` that can be passed in; without one it is HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Self

from bayplan.base.clock import Clock, WallClock
from bayplan.base.flowcontrol import RetryPolicy
from bayplan.client.config.access import Access
from bayplan.client.config.loader import load_access
from bayplan.client.objects import decode
from bayplan.client.verbs.reads import ReadVerbs
from bayplan.client.verbs.writes import SubresourceVerbs
from bayplan.client.wire.calls import AuthenticatedCaller, RateLimiter, RetryingSender
from bayplan.client.wire.transport import Request, RequestLimits, Transport
from bayplan.kube.meta import Struct


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """A client's rate limits, time and size limits, retries and user agent."""

    qps: float = 200.0
    burst: int = 400
    in_flight: int = 64
    limits: RequestLimits = field(default_factory=RequestLimits)
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    user_agent: str = f"bayplan/{version('bayplan')}"


class ServerVersion(Struct):
    """The version that the server reports."""

    git_version: str = ""
    major: str = ""
    minor: str = ""


class Client(ReadVerbs, SubresourceVerbs):
    """A client of one API server; to be made inside a running event loop, and closed."""

    def __init__(
        self,
        access: Access,
        options: ClientOptions | None = None,
        *,
        transport: Transport | None = None,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        options = options or ClientOptions()
        limits = options.limits
        self.access = access
        self.clock = clock or WallClock()
        self.rng = rng or Random()  # noqa: S311 # for jitter, not for security
        self._transport = transport or _http_transport(access, limits)
        caller = AuthenticatedCaller(access, self._transport, limits, options.user_agent)
        limiter = RateLimiter(
            self.clock, qps=options.qps, burst=options.burst, in_flight=options.in_flight
        )
        sender = RetryingSender(caller, limiter, options.retries, self.clock, self.rng)
        super().__init__(sender, limits)

    async def version(self) -> ServerVersion:
        """Return the server's version."""
        body = await self._sender.fetch(Request("GET", "/version", repeatable=True))
        return decode(body, ServerVersion)

    async def raw(self, path: str) -> bytes:
        """Return the response to a GET of a path: health, metrics, OpenAPI."""
        return await self._sender.fetch(Request("GET", path, accept="*/*", repeatable=True))

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _http_transport(access: Access, limits: RequestLimits) -> Transport:
    # Most of the import time of this package, and not needed where a transport is passed in.
    from bayplan.client.wire.http import HttpTransport  # noqa: PLC0415

    return HttpTransport(access, limits.connect)


def connect(
    kubeconfig: str | Path | None = None,
    *,
    context: str | None = None,
    options: ClientOptions | None = None,
) -> Client:
    """Return a client of the cluster that this machine and user are configured for."""
    return Client(load_access(kubeconfig, context=context), options)
