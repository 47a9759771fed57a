"""What reading and writing share: how to send, and which resource an object belongs to."""

from __future__ import annotations

from typing import cast

from bayplan.client.resources import Resource, T, Untyped, resource_of
from bayplan.client.verbs.discovery import Discovery
from bayplan.client.wire.requests import Limits
from bayplan.client.wire.sending import Sender


class Verbs:
    """Base of the client's verbs."""

    def __init__(self, sender: Sender, limits: Limits) -> None:
        self._sender = sender
        self._limits = limits
        self._discovery = Discovery(sender)

    async def discover(self, api_version: str, kind: str) -> Resource[Untyped]:
        """The resource that serves that kind, for kinds that have no type here."""
        return await self._discovery.resource(api_version, kind)

    async def serves(self, resource: Resource[T]) -> bool:
        """Whether the server has that resource now, such as that of a definition."""
        return await self._discovery.serves(resource)

    async def _resource_for(self, item: T, resource: Resource[T] | None) -> Resource[T]:
        if resource is not None:
            return resource
        if not isinstance(item, dict):
            return resource_of(type(item))
        api_version, kind = item.get("apiVersion"), item.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str):
            raise TypeError("an object without a type needs its apiVersion and kind")
        return cast("Resource[T]", await self.discover(api_version, kind))


def without_blanks(**query: str) -> dict[str, str]:
    """A query of those parameters that say something."""
    return {key: value for key, value in query.items() if value}
