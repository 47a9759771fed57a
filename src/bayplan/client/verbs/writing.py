"""Create, update, patch, delete."""

from __future__ import annotations

from typing import overload

import msgspec

from bayplan.client.objects import decode_object, encode, name_of, namespace_of, version_of
from bayplan.client.resources import K, Resource, T, Untyped, resource_of
from bayplan.client.verbs.base import Verbs, without_blanks
from bayplan.client.verbs.patches import Patch
from bayplan.client.verbs.reading import Selection
from bayplan.client.verbs.subresources import DeleteOptions, deletion
from bayplan.client.wire.requests import Request
from bayplan.kube.meta import KubeObject


class Writes(Verbs):
    """The verbs that change something."""

    @overload
    async def create(
        self, item: K, resource: Resource[K] | None = None, *, dry_run: bool = False
    ) -> K: ...
    @overload
    async def create(
        self, item: Untyped, resource: Resource[Untyped] | None = None, *, dry_run: bool = False
    ) -> Untyped: ...
    async def create(
        self, item: T, resource: Resource[T] | None = None, *, dry_run: bool = False
    ) -> T:
        """The object as the server made it. Never sent twice unless certainly not done."""
        resource = await self._resource_for(item, resource)
        path = resource.path(namespace_of(item))
        request = Request("POST", path, _dry(dry_run), encode(_named(item, resource)))
        return decode_object(await self._sender.fetch(request), resource)

    @overload
    async def update(
        self,
        item: K,
        resource: Resource[K] | None = None,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> K: ...
    @overload
    async def update(
        self,
        item: Untyped,
        resource: Resource[Untyped] | None = None,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Untyped: ...
    async def update(
        self,
        item: T,
        resource: Resource[T] | None = None,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> T:
        """Replace an object that has not changed since it was read; ConflictError if it has."""
        resource = await self._resource_for(item, resource)
        if not resource.whole:
            raise TypeError(f"a typed {resource.kind} lacks fields that updating would erase")
        if not version_of(item):
            raise ValueError(f"updating a {resource.kind} needs its resourceVersion")
        path = resource.path(namespace_of(item), name_of(item), subresource)
        body = encode(_named(item, resource))
        request = Request("PUT", path, _dry(dry_run), body, repeatable=True)
        return decode_object(await self._sender.fetch(request), resource)

    async def patch(
        self,
        kind: type[T] | Resource[T],
        *key: str,
        change: Patch,
        subresource: str = "",
        dry_run: bool = False,
    ) -> T:
        """The object as the change left it."""
        resource = resource_of(kind)
        body = await self._send_patch(resource, key, change, subresource, dry_run=dry_run)
        return decode_object(body, resource)

    async def delete(
        self, kind: type[T] | Resource[T], *key: str, options: DeleteOptions | None = None
    ) -> None:
        """Delete the object; `deletion(...)` says how, and under which conditions."""
        resource = resource_of(kind)
        options = options or deletion()
        path = resource.path(*resource.place(key))
        repeatable = options.preconditions is not None
        await self._sender.fetch(
            Request("DELETE", path, body=encode(options), repeatable=repeatable)
        )

    async def delete_all(
        self,
        kind: type[T] | Resource[T],
        which: Selection,
        options: DeleteOptions | None = None,
    ) -> None:
        """Delete whatever is selected, in one request."""
        path = resource_of(kind).path(which.namespace)
        body = encode(options or deletion())
        await self._sender.fetch(Request("DELETE", path, which.query(), body))

    async def _send_patch(
        self,
        resource: Resource[T],
        key: tuple[str, ...],
        change: Patch,
        subresource: str,
        *,
        dry_run: bool = False,
    ) -> bytes:
        request = Request(
            "PATCH",
            resource.path(*resource.place(key), subresource),
            {**change.query, **_dry(dry_run)},
            change.body,
            change.content_type,
            repeatable=change.conditional,
        )
        return await self._sender.fetch(request)


def _dry(dry_run: bool) -> dict[str, str]:
    return without_blanks(dryRun="All" if dry_run else "")


def _named(item: T, resource: Resource[T]) -> KubeObject | dict[str, object]:
    """The object with its kind and version, which the server asks for."""
    if isinstance(item, KubeObject):
        return msgspec.structs.replace(item, api_version=resource.api_version, kind=resource.kind)
    return {**item, "apiVersion": resource.api_version, "kind": resource.kind}
