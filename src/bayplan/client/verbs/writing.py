"""Create, update, patch, delete, bind, evict, scale."""

from __future__ import annotations

import msgspec

from bayplan.client.objects import (
    decode,
    decode_object,
    encode,
    name_of,
    namespace_of,
    version_of,
)
from bayplan.client.resources import PODS, Resource, T, resource_of
from bayplan.client.verbs.base import Verbs, without_blanks
from bayplan.client.verbs.patches import Patch, merge
from bayplan.client.verbs.reading import Selection
from bayplan.client.verbs.subresources import (
    DeleteOptions,
    Scale,
    binding,
    deletion,
    eviction,
)
from bayplan.client.wire.requests import Request
from bayplan.kube.meta import KubeObject


class Writes(Verbs):
    """The verbs that change something."""

    async def create(
        self, item: T, resource: Resource[T] | None = None, *, dry_run: bool = False
    ) -> T:
        """The object as the server made it. Never sent twice unless certainly not done."""
        resource = await self._resource_for(item, resource)
        path = resource.path(namespace_of(item))
        request = Request("POST", path, _dry(dry_run), encode(_named(item, resource)))
        return decode_object(await self._sender.fetch(request), resource)

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
        body = await self._patch(resource, key, change, subresource, dry_run=dry_run)
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

    async def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> None:
        """Put a pod on a node; ConflictError if it is on one, or may not be yet."""
        path = PODS.path(namespace, name, "binding")
        body = encode(binding(namespace, name, node, uid))
        await self._sender.fetch(Request("POST", path, body=body))

    async def evict(self, namespace: str, name: str, *, grace: int | None = None) -> None:
        """Ask a pod to go; TooManyRequestsError if a disruption budget says not now."""
        body = encode(eviction(namespace, name, grace))
        path = PODS.path(namespace, name, "eviction")
        # 429 is the budget's answer here, for the caller to hear, not the server's plea.
        await self._sender.fetch(Request("POST", path, body=body, retry_refusals=False))

    async def scale_of(self, kind: type[T] | Resource[T], *key: str) -> Scale:
        """How many replicas an object wants and has."""
        resource = resource_of(kind)
        path = resource.path(*resource.place(key), "scale")
        return decode(await self._sender.fetch(Request("GET", path, repeatable=True)), Scale)

    async def scale(self, kind: type[T] | Resource[T], *key: str, replicas: int) -> Scale:
        """Make an object want that many replicas."""
        change = merge({"spec": {"replicas": replicas}})
        return decode(await self._patch(resource_of(kind), key, change, "scale"), Scale)

    async def _patch(
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
