"""Discovery of Cluster API's resources, and infrastructure templates of machines.

Infrastructure templates may have the capacity of a node. Each is cached for a minute. One that
cannot be read counts as empty; annotations may have the capacity instead.
"""

from __future__ import annotations

import logging
from typing import TypeVar

import msgspec

from bayplan.autoscaler.providers.clusterapi.objects import InfrastructureRef
from bayplan.autoscaler.providers.clusterapi.templates import Infrastructure
from bayplan.autoscaler.providers.options import ProviderOptionError
from bayplan.client import Client, Resource, Untyped
from bayplan.client.errors import DECODE_ERRORS, ClientError, NotFoundError
from bayplan.client.verbs.reads import UnknownKindError
from bayplan.kube.meta import KubeObject, Struct

T = TypeVar("T", bound=KubeObject)


class _Version(Struct):
    version: str = ""


class _Group(Struct):
    versions: list[_Version] = []
    preferred_version: _Version = msgspec.field(default_factory=_Version)


async def versions(client: Client, group: str) -> list[str]:
    """Return the versions of an API group, the preferred one first; none if it is not served."""
    try:
        body = await client.raw(f"/apis/{group}")
        found = msgspec.json.decode(body, type=_Group)
    except (NotFoundError, *DECODE_ERRORS):
        return []
    names = [found.preferred_version.version, *(one.version for one in found.versions)]
    return list(dict.fromkeys(filter(None, names)))


async def version_of(client: Client, group: str) -> str:
    """Return the version to use; ProviderOptionError if Cluster API is not installed."""
    found = await versions(client, group)
    if not found:
        raise ProviderOptionError(f"--cloud-provider clusterapi: {group} is not served")
    return found[0]


async def resource(client: Client, group: str, version: str, kind: type[T]) -> Resource[T] | None:
    """Return the resource of a kind; None if it is not served."""
    try:
        found = await client.discover(f"{group}/{version}", kind.__name__)
    except UnknownKindError:
        return None
    return Resource(kind, group, version, found.plural, kind.__name__)


log = logging.getLogger(__name__)
FRESH = 60.0
"""Seconds for which a template is cached."""


class InfrastructureTemplates:
    """Reads infrastructure templates, cached."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str, str, str], tuple[float, Infrastructure]] = {}

    async def find(self, ref: InfrastructureRef | None, namespace: str) -> Infrastructure:
        """Return the template's contents; empty if it cannot be read."""
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
        return _infrastructure(item)

    async def _resource(self, ref: InfrastructureRef) -> Resource[Untyped]:
        if ref.api_version:
            return await self._client.discover(ref.api_version, ref.kind)
        for version in await versions(self._client, ref.api_group):
            try:
                return await self._client.discover(f"{ref.api_group}/{version}", ref.kind)
            except UnknownKindError:
                continue
        raise UnknownKindError(f"the server has no kind {ref.kind!r} in {ref.api_group!r}")


def _infrastructure(item: Untyped) -> Infrastructure:
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
    return {str(name): str(text) for name, text in pairs if isinstance(text, str | int)}
