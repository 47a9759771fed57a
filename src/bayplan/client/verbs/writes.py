"""Create, update, patch, delete; bind, evict, scale; and the bodies of these requests.

`merge` sets the fields it names and removes those that are None; `strategic` does the same and
merges keyed lists by their keys (built-in kinds only); `json_patch` is a list of operations, with
`test` among them; `apply` is server-side apply by a field manager.

A patch with `metadata.resourceVersion` is refused by the server if the object has changed since,
which also makes it safe to send again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast, overload

import msgspec

from bayplan.client.objects import decode, decode_object, encode, name_of, namespace_of, version_of
from bayplan.client.resources import PODS, SERVICE_ACCOUNTS, K, Resource, T, Untyped, resource_of
from bayplan.client.verbs.reads import Selection, Verbs, non_empty
from bayplan.client.wire.transport import Request
from bayplan.kube.meta import KubeObject, ObjectMeta, ObjectReference, Struct


@dataclass(frozen=True, slots=True)
class Patch:
    """An encoded patch and its media type."""

    content_type: str
    body: bytes
    query: dict[str, str] = field(default_factory=dict)
    conditional: bool = False


def merge(change: Mapping[str, object]) -> Patch:
    """Return an RFC 7386 merge patch."""
    conditional = _names_version(change)
    return Patch("application/merge-patch+json", encode(change), conditional=conditional)


def strategic(change: Mapping[str, object]) -> Patch:
    """Return a strategic merge patch, which merges keyed lists by their keys."""
    conditional = _names_version(change)
    return Patch("application/strategic-merge-patch+json", encode(change), conditional=conditional)


def json_patch(operations: Sequence[Mapping[str, object]]) -> Patch:
    """Return an RFC 6902 JSON patch."""
    tested = {op.get("path") for op in operations if op.get("op") == "test"}
    conditional = "/metadata/resourceVersion" in tested
    return Patch("application/json-patch+json", encode(operations), conditional=conditional)


def apply(wanted: object, manager: str, *, force: bool = False) -> Patch:
    """Return a server-side apply patch; sending it twice is the same as once."""
    query = {"fieldManager": manager, "force": "true"} if force else {"fieldManager": manager}
    return Patch("application/apply-patch+yaml", encode(wanted), query, conditional=True)


def _names_version(change: Mapping[str, object]) -> bool:
    meta = change.get("metadata")
    return isinstance(meta, dict) and bool(cast("dict[str, object]", meta).get("resourceVersion"))


Propagation = Literal["Background", "Foreground", "Orphan"]


class Preconditions(Struct):
    """The uid and version that an object must still have to be deleted."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Struct):
    """Options of a deletion."""

    api_version: str = ""
    kind: str = ""
    grace_period_seconds: int | None = None
    propagation_policy: Propagation | None = None
    preconditions: Preconditions | None = None
    dry_run: list[str] = []


class Binding(Struct):
    """The binding of a pod to a node."""

    metadata: ObjectMeta
    target: ObjectReference
    api_version: str = ""
    kind: str = ""


class Eviction(Struct):
    """The eviction of a pod, which disruption budgets may refuse."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    delete_options: DeleteOptions | None = None


class ScaleSpec(Struct):
    """The desired number of replicas."""

    replicas: int = 0


class ScaleStatus(Struct):
    """The present number of replicas."""

    replicas: int = 0
    selector: str = ""


class Scale(KubeObject):
    """The scale subresource of an object."""

    spec: ScaleSpec = msgspec.field(default_factory=ScaleSpec)
    status: ScaleStatus = msgspec.field(default_factory=ScaleStatus)


class TokenRequestSpec(Struct):
    """The audience, lifetime and bound object of a token."""

    audiences: list[str] = []
    expiration_seconds: int | None = None
    bound_object_ref: ObjectReference | None = None


class TokenRequestStatus(Struct):
    """An issued token, which its repr does not show."""

    token: str = ""
    expiration_timestamp: str = ""

    def __repr__(self) -> str:
        return f"TokenRequestStatus(…, {self.expiration_timestamp!r})"


class TokenRequest(KubeObject):
    """A request for a service account's token, and its result."""

    spec: TokenRequestSpec = msgspec.field(default_factory=TokenRequestSpec)
    status: TokenRequestStatus = msgspec.field(default_factory=TokenRequestStatus)


def token_request(audience: str, account_uid: str, pod: ObjectReference) -> TokenRequest:
    """Return the request for a token of an account, bound to a pod."""
    return TokenRequest(
        api_version="authentication.k8s.io/v1",
        kind="TokenRequest",
        metadata=ObjectMeta(uid=account_uid),
        spec=TokenRequestSpec(audiences=[audience], bound_object_ref=pod),
    )


def binding(namespace: str, name: str, node: str, uid: str = "") -> Binding:
    """Return the binding of a pod to a node; with a uid, only of that very pod."""
    return Binding(
        api_version="v1",
        kind="Binding",
        metadata=ObjectMeta(name=name, namespace=namespace, uid=uid),
        target=ObjectReference(api_version="v1", kind="Node", name=node),
    )


def eviction(namespace: str, name: str, grace: int | None = None, uid: str = "") -> Eviction:
    """Return the eviction of a pod; with a uid, only of that very pod."""
    preconditions = Preconditions(uid=uid) if uid else None
    options = DeleteOptions(grace_period_seconds=grace, preconditions=preconditions)
    return Eviction(
        api_version="policy/v1",
        kind="Eviction",
        metadata=ObjectMeta(name=name, namespace=namespace),
        delete_options=None if grace is None and not uid else options,
    )


def deletion(
    *,
    grace: int | None = None,
    propagation: Propagation | None = None,
    uid: str | None = None,
    resource_version: str | None = None,
    dry_run: bool = False,
) -> DeleteOptions:
    """Return the options of a deletion; with a uid or version, only of that very object."""
    conditional = uid is not None or resource_version is not None
    preconditions = Preconditions(uid=uid, resource_version=resource_version)
    return DeleteOptions(
        api_version="v1",
        kind="DeleteOptions",
        grace_period_seconds=grace,
        propagation_policy=propagation,
        preconditions=preconditions if conditional else None,
        dry_run=["All"] if dry_run else [],
    )


class WriteVerbs(Verbs):
    """The verbs that change objects."""

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
        """Create an object; return it. Sent again only if it was certainly not created."""
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
        """Update an object; ConflictError if it has changed since it was read."""
        resource = await self._resource_for(item, resource)
        if not resource.has_all_fields:
            raise TypeError(f"a typed {resource.kind} lacks fields that an update would erase")
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
        """Patch an object; return it."""
        resource = resource_of(kind)
        body = await self._send_patch(resource, key, change, subresource, dry_run=dry_run)
        return decode_object(body, resource)

    async def delete(
        self, kind: type[T] | Resource[T], *key: str, options: DeleteOptions | None = None
    ) -> None:
        """Delete an object; `deletion(...)` has options and preconditions."""
        resource = resource_of(kind)
        options = options or deletion()
        path = resource.path(*resource.namespace_and_name(key))
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
        """Delete all selected objects in one request."""
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
            resource.path(*resource.namespace_and_name(key), subresource),
            {**change.query, **_dry(dry_run)},
            change.body,
            change.content_type,
            repeatable=change.conditional,
        )
        return await self._sender.fetch(request)


def _dry(dry_run: bool) -> dict[str, str]:
    return non_empty(dryRun="All" if dry_run else "")


def _named(item: T, resource: Resource[T]) -> KubeObject | dict[str, object]:
    """Return the object with its kind and API version, which the server requires."""
    if isinstance(item, KubeObject):
        return msgspec.structs.replace(item, api_version=resource.api_version, kind=resource.kind)
    return {**item, "apiVersion": resource.api_version, "kind": resource.kind}


class SubresourceVerbs(WriteVerbs):
    """The verbs on subresources: binding, eviction, token, scale."""

    async def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> None:
        """Bind a pod to a node; ConflictError if it is bound, or still gated."""
        path = PODS.path(namespace, name, "binding")
        body = encode(binding(namespace, name, node, uid))
        await self._sender.fetch(Request("POST", path, body=body))

    async def evict(
        self, namespace: str, name: str, *, grace: int | None = None, uid: str = ""
    ) -> None:
        """Evict a pod; TooManyRequestsError if a disruption budget forbids it, ConflictError if it
        has another uid.
        """
        body = encode(eviction(namespace, name, grace, uid))
        path = PODS.path(namespace, name, "eviction")
        # Here 429 comes from the disruption budget: an answer to the caller, not to be retried.
        await self._sender.fetch(Request("POST", path, body=body, retry_refusals=False))

    async def token(self, namespace: str, name: str, request: TokenRequest) -> TokenRequestStatus:
        """Request a token of a service account."""
        path = SERVICE_ACCOUNTS.path(namespace, name, "token")
        answer = await self._sender.fetch(Request("POST", path, body=encode(request)))
        return decode(answer, TokenRequest).status

    async def scale_of(self, kind: type[T] | Resource[T], *key: str) -> Scale:
        """Return an object's desired and present replicas."""
        resource = resource_of(kind)
        path = resource.path(*resource.namespace_and_name(key), "scale")
        return decode(await self._sender.fetch(Request("GET", path, repeatable=True)), Scale)

    async def scale(
        self, kind: type[T] | Resource[T], *key: str, replicas: int, version: str = ""
    ) -> Scale:
        """Set an object's desired replicas; ConflictError if it is of another version."""
        meta = {"metadata": {"resourceVersion": version}} if version else {}
        change = merge({**meta, "spec": {"replicas": replicas}})
        return decode(await self._send_patch(resource_of(kind), key, change, "scale"), Scale)
