"""The templates of machines' infrastructure, which may say how large a node will be.

Each is remembered for a minute. One that cannot be read says nothing: annotations may.
"""

from __future__ import annotations

import logging

from bayplan.autoscaler.providers.clusterapi.kinds import InfrastructureRef
from bayplan.autoscaler.providers.clusterapi.serving import versions
from bayplan.autoscaler.providers.clusterapi.templates import Infrastructure
from bayplan.client import Client, Resource, Untyped
from bayplan.client.errors import ClientError
from bayplan.client.verbs.discovery import UnknownKindError

log = logging.getLogger(__name__)
FRESH = 60.0
"""Seconds that a template is remembered."""


class Infrastructures:
    """Reads templates of infrastructure."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str, str, str], tuple[float, Infrastructure]] = {}

    async def find(self, ref: InfrastructureRef | None, namespace: str) -> Infrastructure:
        """What the template says; nothing, if it cannot be had."""
        if ref is None or not ref.kind or not ref.name:
            return Infrastructure()
        key = (ref.api_version or ref.api_group, ref.kind, namespace, ref.name)
        since, known = self._known.get(key, (float("-inf"), Infrastructure()))
        now = self._client.clock.monotonic()
        if now - since < FRESH:
            return known
        found = await self._read(ref, namespace)
        self._known = {k: v for k, v in self._known.items() if now - v[0] < FRESH}
        self._known[key] = (now, found)
        return found

    async def _read(self, ref: InfrastructureRef, namespace: str) -> Infrastructure:
        try:
            resource = await self._resource(ref)
            item = await self._client.get(resource, namespace, ref.name)
        except ClientError as error:
            log.info("template %s %s/%s: %s", ref.kind, namespace, ref.name, error)
            return Infrastructure()
        return _said(item)

    async def _resource(self, ref: InfrastructureRef) -> Resource[Untyped]:
        if ref.api_version:
            return await self._client.discover(ref.api_version, ref.kind)
        for version in await versions(self._client, ref.api_group):
            try:
                return await self._client.discover(f"{ref.api_group}/{version}", ref.kind)
            except UnknownKindError:
                continue
        raise UnknownKindError(f"the server has no kind {ref.kind!r} in {ref.api_group!r}")


def _said(item: Untyped) -> Infrastructure:
    status = item.get("status")
    found = status if isinstance(status, dict) else {}
    info = _texts(found.get("nodeInfo"))
    return Infrastructure(
        _texts(found.get("capacity")),
        info.get("architecture", ""),
        info.get("operatingSystem", ""),
    )


def _texts(value: object) -> dict[str, str]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {str(name): str(said) for name, said in pairs if isinstance(said, str | int)}
