"""The kinds that each command lists, what follows where it may not, and the RBAC rules it needs.

Kinds are only listed. Where a kind may not be listed, the answer is less exact:
see `CONSEQUENCES`. Without a command's vital kinds there is no answer at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from bayplan.client.resources import Resource, resource_of
from bayplan.kube.codec import KINDS
from bayplan.kube.coordination import Lease
from bayplan.kube.devices import DeviceClass, ResourceClaim
from bayplan.kube.manifests import UnseenKind
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
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
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.kube.workloads import (
    DaemonSet,
    Job,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from bayplan.observe.kinds import OBSERVED

Kind: TypeAlias = type[KubeObject]
Rule: TypeAlias = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class RequiredKinds:
    """The kinds that a command lists, and the vital ones, without which there is no answer."""

    kinds: tuple[Kind, ...]
    vital: frozenset[Kind] = frozenset({Pod, Node})


_DEVICES: tuple[Kind, ...] = (DeviceClass, ResourceClaim)
_QUEUES: tuple[Kind, ...] = (Queue, PodGroup)
_AROUND: tuple[Kind, ...] = (
    NodeGroup,
    Lease,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
ALL_KINDS = RequiredKinds((*_AROUND, *_QUEUES, *_DEVICES, DaemonSet, Job, *OBSERVED))
KINDS_BY_COMMAND: Mapping[str, RequiredKinds] = {
    "explain": RequiredKinds((*_QUEUES, *_DEVICES, DaemonSet, *OBSERVED)),
    "volumes": RequiredKinds(
        (
            StorageClass,
            CSIDriver,
            PersistentVolume,
            PersistentVolumeClaim,
            CSINode,
            Node,
            VolumeAttachment,
            Pod,
        )
    ),
    "plan": RequiredKinds((*_DEVICES, DaemonSet, Job, *OBSERVED)),
    "queues": RequiredKinds((*_QUEUES, PriorityClass, Node, Pod), frozenset({Queue, Pod})),
    "queues --next": RequiredKinds((*_QUEUES, *OBSERVED), frozenset({Queue, Pod, Node})),
    "check": ALL_KINDS,
    "dump": ALL_KINDS,
}
"""By command, its kinds in the order in which they fill a snapshot."""

_NO_SPREADING = "pods without topology spread constraints are not spread by it"
_OWNERLESS = "and nodes that run its pods count as unremovable"
CONSEQUENCES: Mapping[Kind, str] = {
    Pod: "running and pending pods are unknown",
    Node: "nodes are unknown",
    Namespace: "pod affinity that selects namespaces by label matches none",
    PriorityClass: "pods and groups that only name their priority class count as priority 0",
    StorageClass: "unbound claims count as if their class did not exist",
    CSIDriver: "requirements of drivers (attach, storage capacity) are unknown",
    CSINode: "nodes count as if no CSI driver had registered, so their limits are unknown",
    CSIStorageCapacity: "drivers that publish their capacity count as if they had none left",
    PersistentVolume: "bound claims count as if their volume did not exist, and zones and drivers"
    " of volumes are unknown",
    PersistentVolumeClaim: "pods with claims count as if their claims did not exist",
    VolumeAttachment: "attached volumes that no pod uses do not count",
    Service: _NO_SPREADING,
    ReplicationController: f"{_NO_SPREADING}, {_OWNERLESS}",
    ReplicaSet: f"{_NO_SPREADING}, {_OWNERLESS}",
    StatefulSet: f"{_NO_SPREADING}, {_OWNERLESS}",
    PodDisruptionBudget: "preemption and node removal are planned as if there were no budgets",
    DaemonSet: "new nodes are planned as if no DaemonSet pods would run on them",
    Job: "nodes that run pods of Jobs count as unremovable",
    DeviceClass: "devices that pods request as a resource count as not offered",
    ResourceClaim: "pods that claim devices count as if their claims did not exist",
    Queue: "whether pods wait for their queue is unknown",
    PodGroup: "which pods form a gang and wait for their queue is unknown",
    NodeGroup: "node groups that are declared in the cluster are not checked",
    Lease: "whether two autoscalers are running is unknown",
    MutatingWebhookConfiguration: "mutating webhooks are not checked",
    ValidatingWebhookConfiguration: "validating webhooks are not checked",
}
"""By kind, what follows if it may not be listed."""


def resource_name(kind: Kind) -> str:
    """Return the name that RBAC and kubectl use: `pods`, `csinodes.storage.k8s.io`."""
    return str(resource_of(kind))


def describe_unseen(unseen: UnseenKind) -> str:
    """Describe what could not be read, why, and what follows."""
    kind = KINDS[unseen.kind].type
    why = f" ({unseen.reason})" if unseen.reason else ""
    if unseen.readable_namespace:
        namespace = unseen.readable_namespace
        seen = f"{resource_name(kind)} could be read only in namespace {namespace}{why}"
        return f"{seen}: in others, {CONSEQUENCES[kind]}"
    return f"{resource_name(kind)} could not be read{why}: {CONSEQUENCES[kind]}"


def about_kinds(unseen: Iterable[UnseenKind], kinds: Iterable[Kind]) -> list[UnseenKind]:
    """Return those that are about these kinds, in the order of the kinds."""
    order = {kind.__name__: number for number, kind in enumerate(kinds)}
    return sorted((one for one in unseen if one.kind in order), key=lambda one: order[one.kind])


def rules_for(kinds: Iterable[Kind] = ALL_KINDS.kinds) -> list[Rule]:
    """Return the rules of a ClusterRole that may list these kinds, and nothing else."""
    by_group: dict[str, list[Resource[KubeObject]]] = {}
    for kind in kinds:
        resource = resource_of(kind)
        by_group.setdefault(resource.group, []).append(resource)
    return [
        {
            "apiGroups": [group],
            "resources": sorted(one.plural for one in resources),
            "verbs": ["list"],
        }
        for group, resources in sorted(by_group.items())
    ]
