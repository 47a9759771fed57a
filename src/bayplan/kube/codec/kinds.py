"""The kinds that are read, by name and API group.

Any version of the right group is taken: what is read has the same shape in all of them. The group
counts, since others use these names too (there is more than one `Service`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from bayplan.kube.coordination import Lease
from bayplan.kube.devices import GROUP as DEVICES
from bayplan.kube.devices import DeviceClass, ResourceClaim
from bayplan.kube.events import Event
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import GROUP as QUEUEING
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


_ALL = (
    Kind(Node, "", "v1", False),
    Kind(Pod, "", "v1", True),
    Kind(Namespace, "", "v1", False),
    Kind(Service, "", "v1", True),
    Kind(ReplicationController, "", "v1", True),
    Kind(PersistentVolume, "", "v1", False),
    Kind(PersistentVolumeClaim, "", "v1", True),
    Kind(ReplicaSet, "apps", "v1", True),
    Kind(StatefulSet, "apps", "v1", True),
    Kind(DaemonSet, "apps", "v1", True),
    Kind(Job, "batch", "v1", True),
    Kind(PodDisruptionBudget, "policy", "v1", True),
    Kind(PriorityClass, "scheduling.k8s.io", "v1", False),
    Kind(RuntimeClass, "node.k8s.io", "v1", False),
    Kind(StorageClass, "storage.k8s.io", "v1", False),
    Kind(CSINode, "storage.k8s.io", "v1", False),
    Kind(CSIDriver, "storage.k8s.io", "v1", False),
    Kind(CSIStorageCapacity, "storage.k8s.io", "v1", True),
    Kind(VolumeAttachment, "storage.k8s.io", "v1", False),
    Kind(DeviceClass, DEVICES, "v1", False),
    Kind(ResourceClaim, DEVICES, "v1", True),
    Kind(Queue, QUEUEING, "v1beta1", False),
    Kind(PodGroup, QUEUEING, "v1beta1", True),
    Kind(NodeGroup, "bayplan.io", "v1alpha1", False),
    Kind(Lease, "coordination.k8s.io", "v1", True),
    Kind(MutatingWebhookConfiguration, "admissionregistration.k8s.io", "v1", False),
    Kind(ValidatingWebhookConfiguration, "admissionregistration.k8s.io", "v1", False),
)
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""Every kind by its name."""

EVENTS = Kind(Event, "events.k8s.io", "v1", True)
"""Not among them: events decide nothing, and are read only where they are shown."""


def find_kind(name: str, api_version: str = "") -> Kind | None:
    """The kind of that name, unless its API group says that it is somebody else's."""
    kind = KINDS.get(name)
    if kind is None or not api_version:
        return kind
    group = api_version.rpartition("/")[0]
    return kind if group in {kind.group, "extensions"} else None
