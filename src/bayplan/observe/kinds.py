"""The kinds that are watched for the model, in the order in which they fill an empty snapshot.

Small kinds that others refer to come first, then nodes, then pods, so that nothing is counted twice
while a snapshot fills. Finished pods use no resources and are not watched: a pod that finishes
while it is watched is deleted.
"""

from __future__ import annotations

from bayplan.client import Selection
from bayplan.client.resources import CONFIG_MAPS
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
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
"""Every kind that scheduling decisions read."""

WORKLOAD_KINDS: tuple[type[KubeObject], ...] = (DaemonSet, Job, Queue, PodGroup)
"""Kinds that plans and queues read in addition."""
STATUS = ("kube-system", "cluster-autoscaler-status")
"""Namespace and name of the autoscaler's status ConfigMap."""
STATUS_RESOURCE = CONFIG_MAPS

_LIVING = Selection(fields="status.phase!=Succeeded,status.phase!=Failed")


def autoscaler_status() -> Selection:
    """Select the autoscaler's status ConfigMap."""
    return Selection(namespace=STATUS[0], fields=f"metadata.name={STATUS[1]}")


def selection_of(kind: type[KubeObject]) -> Selection:
    """Return the selection of a kind's objects that are watched."""
    return _LIVING if kind is Pod else Selection()
