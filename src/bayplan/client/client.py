"""The client: every verb of the API, for typed kinds and for any other.

    async with connect() as client:
        pod = await client.get(Pod, "shop", "web-0")
        nodes = await client.list(Node, labels="zone=a")
        await client.patch(Node, "n1", change=merge({"metadata": {"labels": {"zone": "b"}}}))
        await client.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {...}})

A kind is named by its type, or by a `Resource`. An object is named by namespace and name, or by its
name alone if it is cluster-scoped. Answers are checked and typed, refusals are exceptions
(`bayplan.client.errors`), and everything is under the client's budget, time limits and size bounds.
What carries the requests is a `Transport` that can be handed in; without one it is HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Self

from bayplan.base.clock import Clock, WallClock
from bayplan.base.pacing import RetryPolicy
from bayplan.client.config.access import Access
from bayplan.client.config.loading import load_access
from bayplan.client.objects import decode
from bayplan.client.verbs.reads import Reads
from bayplan.client.verbs.writes import Actions
from bayplan.client.wire.calls import Budget, Caller, Sender
from bayplan.client.wire.transport import Limits, Request, Transport
from bayplan.kube.meta import Struct


@dataclass(frozen=True, slots=True)
class Tuning:
    """How much a client may ask, how long it waits, how often it tries again."""

    qps: float = 200.0
    burst: int = 400
    in_flight: int = 64
    limits: Limits = field(default_factory=Limits)
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    user_agent: str = f"bayplan/{version('bayplan')}"


class ServerVersion(Struct):
    """What the server says it is."""

    git_version: str = ""
    major: str = ""
    minor: str = ""


class Client(Reads, Actions):
    """A client of one API server. Make it inside a running event loop, and close it."""

    def __init__(
        self,
        access: Access,
        tuning: Tuning | None = None,
        *,
        transport: Transport | None = None,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        tuning = tuning or Tuning()
        limits = tuning.limits
        self.access = access
        self.clock = clock or WallClock()
        self.rng = rng or Random()  # noqa: S311 # it spreads waits, it guards nothing
        self._transport = transport or _over_http(access, limits)
        caller = Caller(access, self._transport, limits, tuning.user_agent)
        budget = Budget(self.clock, qps=tuning.qps, burst=tuning.burst, in_flight=tuning.in_flight)
        sender = Sender(caller, budget, tuning.retries, self.clock, self.rng)
        super().__init__(sender, limits)

    async def version(self) -> ServerVersion:
        """The server's own version."""
        body = await self._sender.fetch(Request("GET", "/version", repeatable=True))
        return decode(body, ServerVersion)

    async def raw(self, path: str) -> bytes:
        """Whatever the server answers to a GET of that path: health, metrics, OpenAPI."""
        return await self._sender.fetch(Request("GET", path, accept="*/*", repeatable=True))

    async def close(self) -> None:
        """Let go of the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _over_http(access: Access, limits: Limits) -> Transport:
    # Most of what this package costs to import, and of no use to who hands in a transport.
    from bayplan.client.wire.http import HttpTransport  # noqa: PLC0415

    return HttpTransport(access, limits.connect)


def connect(
    kubeconfig: str | Path | None = None,
    *,
    context: str | None = None,
    tuning: Tuning | None = None,
) -> Client:
    """A client for the cluster that this machine and user are set up with."""
    return Client(load_access(kubeconfig, context=context), tuning)
