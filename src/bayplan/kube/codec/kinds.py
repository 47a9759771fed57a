"""The kinds that are decoded into types, by name and API group.

Any version of the right group is taken: what is read has the same shape in all of them. The group
counts, since others use these names too (there is more than one `Service`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from bayplan.kube.coordination import Lease
from bayplan.kube.devices import DeviceClass, ResourceClaim
from bayplan.kube.events import Event
from bayplan.kube.kinds import names_of
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import PodGroup, Queue
from bayplan.kube.registrations import (
    MutatingWebhookConfiguration,
    NodeGroup,
    ValidatingWebhookConfiguration,
)
from bayplan.kube.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.kube.workloads import (
    DaemonSet,
    Job,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    Service,
    StatefulSet,
)


class Kind(NamedTuple):
    """A kind: its type, its group and current version, and whether it lives in a namespace."""

    type: type[KubeObject]
    group: str
    version: str
    namespaced: bool

    @property
    def name(self) -> str:
        """What `kind` says on the wire."""
        return self.type.__name__

    @property
    def api_version(self) -> str:
        """What `apiVersion` says on the wire."""
        return f"{self.group}/{self.version}" if self.group else self.version


_TYPES: tuple[type[KubeObject], ...] = (
    Node,
    Pod,
    Namespace,
    Service,
    ReplicationController,
    PersistentVolume,
    PersistentVolumeClaim,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    PodDisruptionBudget,
    PriorityClass,
    RuntimeClass,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
    DeviceClass,
    ResourceClaim,
    Queue,
    PodGroup,
    NodeGroup,
    Lease,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)


def _typed(kind: type[KubeObject], group: str | None = None) -> Kind:
    names = names_of(kind.__name__, group)
    return Kind(kind, names.group, names.version, names.namespaced)


KINDS: Mapping[str, Kind] = MappingProxyType({kind.__name__: _typed(kind) for kind in _TYPES})
"""Every kind by its name."""

EVENTS = _typed(Event, "events.k8s.io")
"""Not among them: events decide nothing, and are read only where they are shown."""


def find_kind(name: str, api_version: str = "") -> Kind | None:
    """The kind of that name, unless its API group says that it is somebody else's."""
    kind = KINDS.get(name)
    if kind is None or not api_version:
        return kind
    group = api_version.rpartition("/")[0]
    return kind if group in {kind.group, "extensions"} else None
