"""What a management cluster serves of Cluster API: which version, and which of the kinds."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from bayplan.autoscaler.providers.options import ProviderOptionError
from bayplan.client import Client, Resource
from bayplan.client.errors import UNREADABLE, NotFoundError
from bayplan.client.verbs.discovery import UnknownKindError
from bayplan.kube.meta import KubeObject, Struct

T = TypeVar("T", bound=KubeObject)


class _Version(Struct):
    version: str = ""


class _Group(Struct):
    versions: list[_Version] = []
    preferred_version: _Version = msgspec.field(default_factory=_Version)


async def versions(client: Client, group: str) -> list[str]:
    """The versions of a group, the server's favourite first; none if there is no such group."""
    try:
        body = await client.raw(f"/apis/{group}")
        found = msgspec.json.decode(body, type=_Group)
    except (NotFoundError, *UNREADABLE):
        return []
    names = [found.preferred_version.version, *(one.version for one in found.versions)]
    return list(dict.fromkeys(filter(None, names)))


async def version_of(client: Client, group: str) -> str:
    """The version to use; ProviderOptionError if the cluster knows nothing of Cluster API."""
    found = await versions(client, group)
    if not found:
        raise ProviderOptionError(f"--cloud-provider clusterapi: {group} is not served there")
    return found[0]


async def resource(client: Client, group: str, version: str, kind: type[T]) -> Resource[T] | None:
    """A kind's resource; None if it is not served."""
    try:
        found = await client.discover(f"{group}/{version}", kind.__name__)
    except UnknownKindError:
        return None
    return Resource(kind, group, version, found.plural, kind.__name__)
