"""What all builders can do: identity, labels, owners."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Generic, Self, TypeVar

from bayplan.kube.meta import KubeObject, ObjectMeta, OwnerReference

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
DEFAULT = "default"
T = TypeVar("T", bound=KubeObject)
_uids = itertools.count(1)


class Builder(Generic[T]):
    """What all builders can do: identity, labels, owners."""

    def __init__(self, built: T, name: str, namespace: str = "") -> None:
        uid = f"uid-{next(_uids)}"
        built.metadata = ObjectMeta(name=name, namespace=namespace, uid=uid)
        built.kind = type(built).__name__
        self._built = built

    def obj(self) -> T:
        """The object."""
        return self._built

    def namespace(self, name: str) -> Self:
        """Put it into a namespace."""
        self._built.metadata.namespace = name
        return self

    def uid(self, uid: str) -> Self:
        """Give it this uid."""
        self._built.metadata.uid = uid
        return self

    def labels(self, labels: Mapping[str, str] | None = None, **more: str) -> Self:
        """Add labels."""
        self._built.metadata.labels = {**self._built.metadata.labels, **(labels or {}), **more}
        return self

    def label(self, key: str, value: str) -> Self:
        """Add one label, of any key."""
        return self.labels({key: value})

    def annotation(self, key: str, value: str) -> Self:
        """Add one annotation."""
        self._built.metadata.annotations = {**self._built.metadata.annotations, key: value}
        return self

    def owner(self, kind: str, name: str, uid: str = "owner", *, controller: bool = True) -> Self:
        """Name an owner."""
        owner = OwnerReference(kind=kind, name=name, uid=uid, controller=controller)
        self._built.metadata.owner_references = [*self._built.metadata.owner_references, owner]
        return self

    def created(self, timestamp: str) -> Self:
        """Say when it was created."""
        self._built.metadata.creation_timestamp = timestamp
        return self

    def terminating(self, timestamp: str = "2024-01-01T00:00:00Z") -> Self:
        """Mark it as being deleted."""
        self._built.metadata.deletion_timestamp = timestamp
        return self
