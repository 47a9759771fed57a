"""Changing a size: read, checked and written as one step, which never counts twice.

The size is written only over the version that was read. Where that fails, either our own write came
through after all, or somebody else changed the object: if the size is what was wanted it is done,
if it is as it was we try again, and if it is anything else we let be.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.autoscaler.providers.clusterapi.failing import translated
from bayplan.autoscaler.providers.clusterapi.groups import Group
from bayplan.autoscaler.providers.clusterapi.kinds import Scalable
from bayplan.client import Client, Resource
from bayplan.client.errors import ConflictError
from bayplan.client.objects import version_of
from bayplan.client.verbs.subresources import Scale
from bayplan.nodegroups import NodeGroup, RefusedError

TRIES = 5


@dataclass(frozen=True, slots=True)
class Sized:
    """A size, and the version of the object that has it."""

    replicas: int
    version: str


class Scaler:
    """Reads and writes the scale subresource."""

    def __init__(self, client: Client, resource: Resource[Scalable], group: Group) -> None:
        self._client = client
        self._resource = resource
        self._group = group
        self._key = (group.resource.namespace, group.resource.name)

    async def size(self) -> int:
        """The size now."""
        return (await self._read()).spec.replicas

    async def change(self, by: int) -> Sized:
        """Make it larger or smaller, within the group's bounds; RefusedError beyond them."""
        scale = await self._read()
        before = scale.spec.replicas
        wanted = within(self._group.group, before + by, grows=by > 0)
        for _ in range(TRIES):
            try:
                with translated():
                    written = await self._client.scale(
                        self._resource, *self._key, replicas=wanted, version=version_of(scale)
                    )
                return Sized(wanted, version_of(written))
            except ConflictError:
                scale = await self._read()
            if scale.spec.replicas == wanted:
                return Sized(wanted, version_of(scale))
            if scale.spec.replicas != before:
                break
        raise RefusedError(f"node group {self._group.group.id}: somebody else is resizing it")

    async def _read(self) -> Scale:
        with translated():
            scale = await self._client.scale_of(self._resource, *self._key)
        if scale.metadata.uid != self._group.resource.metadata.uid:
            raise RefusedError(f"node group {self._group.group.id} is a new one of that name")
        return scale


def within(group: NodeGroup, size: int, *, grows: bool) -> int:
    """A size that is within a group's bounds, on the side that it moves to."""
    if grows and size > group.max_size:
        raise RefusedError(f"node group {group.id}: {size} is above its maximum {group.max_size}")
    if not grows and size < group.min_size:
        raise RefusedError(
            f"node group {group.id}: {size} would be below its minimum {group.min_size}"
        )
    return size
