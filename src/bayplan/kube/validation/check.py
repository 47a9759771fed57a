"""Validation of any object: common fields first, then those of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bayplan.kube.codec import ObjectError, identify
from bayplan.kube.meta import KubeObject, ObjectMeta
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.kube.validation import fields, nodes, pods, storage, workloads
from bayplan.kube.workloads import (
    DaemonSet,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    Service,
    StatefulSet,
)

# A table from a type to the check of that type cannot have a narrower type.
_CHECKS: Mapping[type[KubeObject], Callable[[Any], None]] = {
    Pod: pods.check_pod,
    Node: nodes.check_node,
    PersistentVolume: storage.check_volume,
    PersistentVolumeClaim: storage.check_claim,
    StorageClass: storage.check_class,
    CSINode: storage.check_csi_node,
    CSIStorageCapacity: storage.check_capacity,
    VolumeAttachment: storage.check_attachment,
    ReplicaSet: workloads.check_selector,
    StatefulSet: workloads.check_selector,
    DaemonSet: workloads.check_daemon_set,
    PodDisruptionBudget: workloads.check_selector,
    Service: workloads.check_service,
    ReplicationController: workloads.check_service,
    RuntimeClass: workloads.check_runtime_class,
}


def check(obj: KubeObject) -> None:
    """Raise ObjectError for the first error of the object."""
    _check(obj, _CHECKS.get(type(obj)))


def check_again(pod: Pod) -> None:
    """Check a pod whose spec has been checked before, except for its node."""
    _check(pod, pods.check_pod_again)


def _check(obj: KubeObject, special: Callable[[Any], None] | None) -> None:
    try:
        _metadata(obj.metadata)
        if special is not None:
            special(obj)
    except fields.FieldError as error:
        identity = identify(type(obj).__name__, obj.namespace, obj.name)
        raise ObjectError(identity, error.path, error.shown, error.problem) from None


def validate(obj: KubeObject) -> ObjectError | None:
    """Return the first error of the object, or None."""
    try:
        check(obj)
    except ObjectError as error:
        return error
    return None


def _metadata(meta: ObjectMeta) -> None:
    fields.name("metadata.name", meta.name)
    fields.optional_name("metadata.namespace", meta.namespace)
    if meta.labels:
        fields.labels("metadata.labels", meta.labels)
