"""Bind, evict, scale: writes to the subresources that stand for an action."""

from __future__ import annotations

from bayplan.client.objects import decode, encode
from bayplan.client.resources import PODS, SERVICE_ACCOUNTS, Resource, T, resource_of
from bayplan.client.verbs.patches import merge
from bayplan.client.verbs.subresources import (
    Scale,
    TokenRequest,
    TokenRequestStatus,
    binding,
    eviction,
)
from bayplan.client.verbs.writing import Writes
from bayplan.client.wire.requests import Request


class Actions(Writes):
    """The verbs that ask an object to do something."""

    async def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> None:
        """Put a pod on a node; ConflictError if it is on one, or may not be yet."""
        path = PODS.path(namespace, name, "binding")
        body = encode(binding(namespace, name, node, uid))
        await self._sender.fetch(Request("POST", path, body=body))

    async def evict(
        self, namespace: str, name: str, *, grace: int | None = None, uid: str = ""
    ) -> None:
        """Ask a pod to go; TooManyRequestsError if a disruption budget says not now, and
        ConflictError if it has another uid.
        """
        body = encode(eviction(namespace, name, grace, uid))
        path = PODS.path(namespace, name, "eviction")
        # 429 is the budget's answer here, for the caller to hear, not the server's plea.
        await self._sender.fetch(Request("POST", path, body=body, retry_refusals=False))

    async def token(self, namespace: str, name: str, request: TokenRequest) -> TokenRequestStatus:
        """A token of a service account."""
        path = SERVICE_ACCOUNTS.path(namespace, name, "token")
        answer = await self._sender.fetch(Request("POST", path, body=encode(request)))
        return decode(answer, TokenRequest).status

    async def scale_of(self, kind: type[T] | Resource[T], *key: str) -> Scale:
        """How many replicas an object wants and has."""
        resource = resource_of(kind)
        path = resource.path(*resource.place(key), "scale")
        return decode(await self._sender.fetch(Request("GET", path, repeatable=True)), Scale)

    async def scale(
        self, kind: type[T] | Resource[T], *key: str, replicas: int, version: str = ""
    ) -> Scale:
        """Make an object want that many replicas; ConflictError if it is of another version."""
        meta = {"metadata": {"resourceVersion": version}} if version else {}
        change = merge({**meta, "spec": {"replicas": replicas}})
        return decode(await self._send_patch(resource_of(kind), key, change, "scale"), Scale)
