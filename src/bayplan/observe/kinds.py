"""Which kinds are watched for the model, in the order in which they fill an empty snapshot.

What is small and referred to comes first, then nodes, then what lies on them, so that nothing has
to be counted twice while a snapshot fills. Pods that have ended take nothing and are not asked for:
a pod that ends while it is watched is told as gone.
"""

from __future__ import annotations

from bayplan.client import Selection
from bayplan.client.resources import CONFIG_MAPS
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import PodGroup, Queue
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

OBSERVED: tuple[type[KubeObject], ...] = (
    Namespace,
    PriorityClass,
    StorageClass,
    CSIDriver,
    Service,
    ReplicationController,
    ReplicaSet,
    StatefulSet,
    PodDisruptionBudget,
    PersistentVolume,
    PersistentVolumeClaim,
    CSIStorageCapacity,
    CSINode,
    Node,
    VolumeAttachment,
    Pod,
)
"""Every kind that decisions look at."""

ALSO_SHOWN: tuple[type[KubeObject], ...] = (DaemonSet, Job, Queue, PodGroup)
"""Kinds that placing a pod does not look at, and that plans and queues rest on."""
STATUS = ("kube-system", "cluster-autoscaler-status")
"""Where an autoscaler writes how everything stands."""
STATUSES = CONFIG_MAPS

_LIVING = Selection(fields="status.phase!=Succeeded,status.phase!=Failed")


def status_alone() -> Selection:
    """Of all ConfigMaps, an autoscaler's status."""
    return Selection(namespace=STATUS[0], fields=f"metadata.name={STATUS[1]}")


def which(kind: type[KubeObject]) -> Selection:
    """The objects of a kind that matter."""
    return _LIVING if kind is Pod else Selection()
