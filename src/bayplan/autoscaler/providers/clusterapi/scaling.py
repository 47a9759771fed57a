"""Changing a size: read, checked and written as one step, which never counts twice.

The size is written only over the version that was read. Where that fails, either our own write came
through after all, or another client changed the object: if the size is what was wanted it is done,
if it is as it was we try again, and if it is anything else we let be. Machines that are to go first
when their set gets smaller are marked before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bayplan import nodegroups
from bayplan.autoscaler.providers.clusterapi.objects import (
    OLD_DELETE_MARK,
    ApiNames,
    Machine,
    Scalable,
)
from bayplan.autoscaler.providers.clusterapi.templates import Group
from bayplan.client import Client, Resource, deletion, merge
from bayplan.client.errors import (
    ApiError,
    ClientError,
    ConflictError,
    NotFoundError,
    ServerFaultError,
    TooManyRequestsError,
    TransportError,
)
from bayplan.client.objects import version_of
from bayplan.client.verbs.writes import Scale
from bayplan.kube.times import timestamp
from bayplan.nodegroups import NodeGroup, NodeGroupError, RefusedError, UnavailableError

_LATER = (TransportError, ServerFaultError, TooManyRequestsError)


@contextmanager
def translated() -> Iterator[None]:
    """Refusals as the provider's errors; a conflict is for whoever asks to deal with."""
    try:
        yield
    except ConflictError:
        raise
    except NotFoundError as error:
        raise nodegroups.NotFoundError(str(error)) from error
    except _LATER as error:
        raise UnavailableError(str(error)) from error
    except ApiError as error:
        raise RefusedError(str(error)) from error
    except ClientError as error:
        raise NodeGroupError(str(error)) from error


log = logging.getLogger(__name__)


class Marks:
    """Writes and takes back marks, each only on the very machine that is meant."""

    def __init__(self, client: Client, resource: Resource[Machine], words: ApiNames) -> None:
        self._client = client
        self._resource = resource
        self._words = words

    async def mark(self, machines: Sequence[Machine]) -> None:
        """Mark all of them; if one cannot be marked, none is."""
        moment = timestamp(self._client.clock.now())
        try:
            for one in machines:
                with translated():
                    await self._write(one, moment)
        except ConflictError as error:
            await self.unmark(machines)
            raise RefusedError(str(error)) from error
        except BaseException:
            await asyncio.shield(self.unmark(machines))
            raise

    async def unmark(self, machines: Sequence[Machine]) -> None:
        """Take the marks back; one that cannot be taken back is only told."""
        for one in machines:
            try:
                await self._write(one, None)
            except NotFoundError:
                continue
            except ClientError as error:
                log.warning("machine %s stays marked for deletion: %s", one.key, error)

    async def delete(self, machine: Machine) -> None:
        """Delete a machine itself, so that its set makes another."""
        with translated():
            await self._client.delete(
                self._resource,
                machine.namespace,
                machine.name,
                options=deletion(uid=machine.metadata.uid),
            )

    async def _write(self, machine: Machine, moment: str | None) -> None:
        marks = dict.fromkeys((self._words.delete_mark, OLD_DELETE_MARK), moment)
        change = merge({"metadata": {"uid": machine.metadata.uid, "annotations": marks}})
        await self._client.patch(self._resource, machine.namespace, machine.name, change=change)


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
