"""The bodies of the subresources that Bayplan writes: binding, eviction, scale, delete options."""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.kube.meta import KubeObject, ObjectMeta, ObjectReference, Struct

Propagation = Literal["Background", "Foreground", "Orphan"]


class Preconditions(Struct):
    """What must still be true of an object for it to be deleted."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Struct):
    """How to delete."""

    api_version: str = ""
    kind: str = ""
    grace_period_seconds: int | None = None
    propagation_policy: Propagation | None = None
    preconditions: Preconditions | None = None
    dry_run: list[str] = []


class Binding(Struct):
    """A pod's place."""

    metadata: ObjectMeta
    target: ObjectReference
    api_version: str = ""
    kind: str = ""


class Eviction(Struct):
    """A polite deletion, which disruption budgets may refuse."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    delete_options: DeleteOptions | None = None


class ScaleSpec(Struct):
    """How many are wanted."""

    replicas: int = 0


class ScaleStatus(Struct):
    """How many there are."""

    replicas: int = 0
    selector: str = ""


class Scale(KubeObject):
    """The size of whatever has one."""

    spec: ScaleSpec = msgspec.field(default_factory=ScaleSpec)
    status: ScaleStatus = msgspec.field(default_factory=ScaleStatus)


class TokenRequestSpec(Struct):
    """For whom a token shall be good, and as long as what exists."""

    audiences: list[str] = []
    expiration_seconds: int | None = None
    bound_object_ref: ObjectReference | None = None


class TokenRequestStatus(Struct):
    """A token, which never shows in a repr."""

    token: str = ""
    expiration_timestamp: str = ""

    def __repr__(self) -> str:
        return f"TokenRequestStatus(…, {self.expiration_timestamp!r})"


class TokenRequest(KubeObject):
    """A service account's token: asked for by its spec, given in its status."""

    spec: TokenRequestSpec = msgspec.field(default_factory=TokenRequestSpec)
    status: TokenRequestStatus = msgspec.field(default_factory=TokenRequestStatus)


def token_request(audience: str, account_uid: str, pod: ObjectReference) -> TokenRequest:
    """A token of that very account, for an audience, as long as a pod exists."""
    return TokenRequest(
        api_version="authentication.k8s.io/v1",
        kind="TokenRequest",
        metadata=ObjectMeta(uid=account_uid),
        spec=TokenRequestSpec(audiences=[audience], bound_object_ref=pod),
    )


def binding(namespace: str, name: str, node: str, uid: str = "") -> Binding:
    """That pod, on that node; with a uid, only if it is still that very pod."""
    return Binding(
        api_version="v1",
        kind="Binding",
        metadata=ObjectMeta(name=name, namespace=namespace, uid=uid),
        target=ObjectReference(api_version="v1", kind="Node", name=node),
    )


def eviction(namespace: str, name: str, grace: int | None = None, uid: str = "") -> Eviction:
    """The eviction of that pod; with a uid, only if it is still that very pod."""
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
    """How to delete; with a uid or version, only if the object still is that one."""
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
