"""Changes the size of a group through the scale subresource, exactly once.

The size is written only over the version that was read. On a conflict, either our own write
succeeded after all, or another client changed the object: if the size is the wanted one it is done,
if it is unchanged the write is retried, otherwise it is refused.

Machines that must be deleted first when their set is scaled down are annotated before, with the
size that is then written. A mark counts only while the group has more machines than replicas
(`machines_to_go`): after a crash between both writes the next deletion continues, or removes the
mark, and a machine whose replica was subtracted is never subtracted again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from bayplan import nodegroups
from bayplan.autoscaler.providers.clusterapi.objects import (
    DELETION_SIZE,
    OLD_DELETE_MARK,
    ApiNames,
    Machine,
    Scalable,
    is_marked,
    is_marked_by_us,
)
from bayplan.autoscaler.providers.clusterapi.templates import ScalableGroup
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
from bayplan.nodegroups import (
    CloudNodeGroup,
    NodeGroupError,
    ProviderUnavailableError,
    RefusedError,
)

_LATER = (TransportError, ServerFaultError, TooManyRequestsError)


@contextmanager
def provider_errors() -> Iterator[None]:
    """Raise the client's errors as the provider's, except conflicts."""
    try:
        yield
    except ConflictError:
        raise
    except NotFoundError as error:
        raise nodegroups.NodeGroupNotFoundError(str(error)) from error
    except _LATER as error:
        raise ProviderUnavailableError(str(error)) from error
    except ApiError as error:
        raise RefusedError(str(error)) from error
    except ClientError as error:
        raise NodeGroupError(str(error)) from error


log = logging.getLogger(__name__)


class DeletionMarks:
    """Sets and removes the delete-machine annotation, guarded by the machine's uid."""

    def __init__(self, client: Client, resource: Resource[Machine], names: ApiNames) -> None:
        self._client = client
        self._resource = resource
        self._names = names

    async def mark(self, machines: Sequence[Machine], replicas: int) -> None:
        """Annotate machines, all or none, with the replicas that are written next."""
        moment = timestamp(self._client.clock.now())
        marks = dict.fromkeys((self._names.delete_mark, OLD_DELETE_MARK), moment)
        try:
            for one in machines:
                with provider_errors():
                    await self._write(one, {**marks, DELETION_SIZE: str(replicas)})
        except ConflictError as error:
            await self.unmark(machines)
            raise RefusedError(str(error)) from error
        except BaseException:
            await asyncio.shield(self.unmark(machines))
            raise

    async def unmark(self, machines: Sequence[Machine]) -> None:
        """Remove our annotations again; failures are only logged."""
        for one in machines:
            try:
                await self._clear(one)
            except NotFoundError:
                continue
            except ClientError as error:
                log.warning("machine %s keeps its delete annotation: %s", one.key, error)

    async def withdraw(self, machines: Sequence[Machine]) -> None:
        """Remove our annotations whose replicas were never written."""
        for one in machines:
            with suppress(nodegroups.NodeGroupNotFoundError):
                await self._withdraw(one)

    async def _withdraw(self, machine: Machine) -> None:
        try:
            with provider_errors():
                await self._clear(machine)
        except ConflictError as error:
            raise RefusedError(str(error)) from error

    async def _clear(self, machine: Machine) -> None:
        """Remove our annotations, and no mark of another client."""
        theirs = is_marked(machine, self._names) and not is_marked_by_us(machine)
        marks = () if theirs else (self._names.delete_mark, OLD_DELETE_MARK)
        await self._write(machine, dict.fromkeys((*marks, DELETION_SIZE)))

    async def delete(self, machine: Machine) -> None:
        """Delete a machine directly, so that its set replaces it."""
        with provider_errors():
            await self._client.delete(
                self._resource,
                machine.namespace,
                machine.name,
                options=deletion(uid=machine.metadata.uid),
            )

    async def read_again(self, machines: Sequence[Machine]) -> list[Machine]:
        """Read machines from the server; those that are gone or replaced are left out."""
        found: list[Machine] = []
        for one in machines:
            which = f"metadata.name={one.name}"
            with provider_errors():
                page = await self._client.list(self._resource, one.namespace, fields=which)
            found += [read for read in page.items if read.metadata.uid == one.metadata.uid]
        return found

    async def list_machines(self, namespace: str) -> list[Machine]:
        """Read the machines of a namespace from the server."""
        with provider_errors():
            return (await self._client.list(self._resource, namespace)).items

    async def _write(self, machine: Machine, marks: Mapping[str, str | None]) -> None:
        change = merge({"metadata": {"uid": machine.metadata.uid, "annotations": dict(marks)}})
        await self._client.patch(self._resource, machine.namespace, machine.name, change=change)


TRIES = 5


@dataclass(frozen=True, slots=True)
class WrittenSize:
    """A size that was written, and the object's version with it."""

    replicas: int
    version: str


class Scaler:
    """Reads and writes the scale subresource."""

    def __init__(self, client: Client, resource: Resource[Scalable], group: ScalableGroup) -> None:
        self._client = client
        self._resource = resource
        self._group = group
        self._key = (group.resource.namespace, group.resource.name)

    async def size(self) -> int:
        """Read the current size."""
        return (await self._read()).spec.replicas

    async def change(self, by: int, before: int | None = None) -> WrittenSize:
        """Change the size, within the group's limits; RefusedError beyond them.

        With `before`, only if that is still the size.
        """
        scale = await self._read()
        if before is not None and scale.spec.replicas != before:
            raise self._refusal()
        before = scale.spec.replicas
        wanted = check_bounds(self._group.group, before + by, grows=by > 0)
        for _ in range(TRIES):
            try:
                with provider_errors():
                    written = await self._client.scale(
                        self._resource, *self._key, replicas=wanted, version=version_of(scale)
                    )
                return WrittenSize(wanted, version_of(written))
            except ConflictError:
                scale = await self._read()
            if scale.spec.replicas == wanted:
                return WrittenSize(wanted, version_of(scale))
            if scale.spec.replicas != before:
                break
        raise self._refusal()

    def _refusal(self) -> RefusedError:
        return RefusedError(f"node group {self._group.group.id}: another client is resizing it")

    async def _read(self) -> Scale:
        with provider_errors():
            scale = await self._client.scale_of(self._resource, *self._key)
        if scale.metadata.uid != self._group.resource.metadata.uid:
            raise RefusedError(f"node group {self._group.group.id} was replaced by another object")
        return scale


def check_bounds(group: CloudNodeGroup, size: int, *, grows: bool) -> int:
    """Return the size; RefusedError if it is beyond the group's maximum or minimum."""
    if grows and size > group.max_size:
        raise RefusedError(f"node group {group.id}: {size} is above its maximum {group.max_size}")
    if not grows and size < group.min_size:
        raise RefusedError(
            f"node group {group.id}: {size} would be below its minimum {group.min_size}"
        )
    return size
