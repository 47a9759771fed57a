"""What each command reads of a cluster, what follows where it may not, and the rules that let it.

Every kind is only ever listed. A kind that may not be listed leaves an answer that rests on less;
`CONSEQUENCES` says on how much less. Without a command's vital kinds there is no answer at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from bayplan.client.resources import Resource, resource_of
from bayplan.kube.codec import KINDS
from bayplan.kube.coordination import Lease
from bayplan.kube.devices import DeviceClass, ResourceClaim
from bayplan.kube.loading import Unseen
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
    Service,
    StatefulSet,
)
from bayplan.observe.kinds import OBSERVED

Kind: TypeAlias = type[KubeObject]
Rule: TypeAlias = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Needs:
    """The kinds that a command reads, and those without which its answer has no meaning."""

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
EVERYTHING = Needs((*_AROUND, *_QUEUES, *_DEVICES, DaemonSet, Job, *OBSERVED))
NEEDS: Mapping[str, Needs] = {
    "explain": Needs((*_QUEUES, *_DEVICES, DaemonSet, *OBSERVED)),
    "volumes": Needs(
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
    "plan": Needs((*_DEVICES, DaemonSet, Job, *OBSERVED)),
    "queues": Needs((*_QUEUES, PriorityClass, Node, Pod), frozenset({Queue, Pod})),
    "queues --next": Needs((*_QUEUES, *OBSERVED), frozenset({Queue, Pod, Node})),
    "check": EVERYTHING,
    "dump": EVERYTHING,
}
"""By command, its kinds in the order in which they fill a snapshot."""

_NO_SPREADING = "pods that say nothing of spreading are not spread by it"
_OWNERLESS = "and a node that runs its pods looks as if it could not be given back"
CONSEQUENCES: Mapping[Kind, str] = {
    Pod: "what runs on nodes, and who waits, is not known",
    Node: "there is nothing to judge by",
    Namespace: "pod affinity that selects namespaces by label finds none",
    PriorityClass: "pods and groups that only name their priority class count as priority 0",
    StorageClass: "claims that are not bound look as if their class did not exist",
    CSIDriver: "what drivers demand (to be on the node, to have capacity) is not known",
    CSINode: "nodes look as if no CSI driver had registered, so their limits are not known",
    CSIStorageCapacity: "drivers that publish their capacity look as if they had none left",
    PersistentVolume: "claims that are bound look as if their volume were gone, and volumes' zones"
    " and drivers are not known",
    PersistentVolumeClaim: "pods with claims look as if their claims were gone",
    VolumeAttachment: "volumes that are attached though no pod uses them do not count",
    Service: _NO_SPREADING,
    ReplicationController: f"{_NO_SPREADING}, {_OWNERLESS}",
    ReplicaSet: f"{_NO_SPREADING}, {_OWNERLESS}",
    StatefulSet: f"{_NO_SPREADING}, {_OWNERLESS}",
    PodDisruptionBudget: "preemption and removals are judged as if no budget stood against them",
    DaemonSet: "new nodes are judged as if no daemon would run on them",
    Job: "a node that runs pods of Jobs looks as if it could not be given back",
    DeviceClass: "devices that pods ask for as a resource look as if nobody offered them",
    ResourceClaim: "pods that claim devices look as if their claims were gone",
    Queue: "whether pods wait for their queue is not known",
    PodGroup: "which pods start together, and wait for their queue, is not known",
    NodeGroup: "node groups that are declared in the cluster are not looked at",
    Lease: "whether two autoscalers are at work is not known",
    MutatingWebhookConfiguration: "webhooks that change objects are not looked at",
    ValidatingWebhookConfiguration: "webhooks that refuse objects are not looked at",
}
"""What follows if a kind may not be listed."""


def resource_name(kind: Kind) -> str:
    """As RBAC and kubectl name it: `pods`, `csinodes.storage.k8s.io`."""
    return str(resource_of(kind))


def note_of(unseen: Unseen) -> str:
    """What could not be read, why, and what follows."""
    kind = KINDS[unseen.kind].type
    why = f" ({unseen.why})" if unseen.why else ""
    if unseen.but_in:
        seen = f"{resource_name(kind)} could be read in namespace {unseen.but_in} alone{why}"
        return f"{seen}: of others, {CONSEQUENCES[kind]}"
    return f"{resource_name(kind)} could not be read{why}: {CONSEQUENCES[kind]}"


def concerning(unseen: Iterable[Unseen], kinds: Iterable[Kind]) -> list[Unseen]:
    """Those of them that are about these kinds, in the order of the kinds."""
    order = {kind.__name__: number for number, kind in enumerate(kinds)}
    return sorted((one for one in unseen if one.kind in order), key=lambda one: order[one.kind])


def rules_for(kinds: Iterable[Kind] = EVERYTHING.kinds) -> list[Rule]:
    """The rules of a ClusterRole that may list these kinds, and do nothing else."""
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
