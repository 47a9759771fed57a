"""Validation: whatever can be wrong with an object is found before anything is changed.

Each kind is read here as it will be read later. What is kept is a private copy, except of pods:
there are many, and what is counted of them is kept beside the object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from bayplan.fit.object_copies import PROBLEMS, private_copy, refused
from bayplan.fit.signatures.signature import PodSignature, SignatureCache
from bayplan.fit.volumes import identity
from bayplan.fit.volumes.available_volumes import wanted_volume
from bayplan.fit.volumes.topology import reach_of
from bayplan.kube import quantity
from bayplan.kube.codec import KINDS
from bayplan.kube.devices import ResourceClaim
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import compile_node_selector, compile_selector
from bayplan.kube.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from bayplan.kube.workloads import PodDisruptionBudget, ReplicaSet, StatefulSet

T = TypeVar("T", bound=KubeObject)


def validate_object(obj: T, *, own: bool = False) -> T:
    """The object as it can be kept; ObjectError if it cannot.

    It is a private copy, unless the object is the caller's to give away: one that came from the
    wire and that nothing changes any more.
    """
    if not own:
        obj = private_copy(obj)
    _check_name(obj)
    path, read = _READERS.get(type(obj), ("", None))
    if read is not None:
        try:
            read(obj)
        except PROBLEMS as error:
            raise refused(obj, path, error) from error
    return obj


def validate_pod(pod: Pod, signatures: SignatureCache) -> PodSignature:
    """The signature that a pod is counted by; ObjectError if the pod cannot be used."""
    try:
        return signatures.counted(pod)
    except PROBLEMS as error:
        raise refused(pod, "spec", error) from error


def _check_name(obj: KubeObject) -> None:
    """Refuse an object without a name; drop the namespace of a kind that has none."""
    meta, kind = obj.metadata, KINDS.get(type(obj).__name__)
    if not meta.name:
        raise refused(obj, "metadata.name", ValueError("it has none"))
    if meta.namespace and kind is not None and not kind.namespaced:
        meta.namespace = ""


def _read_node(node: Node) -> None:
    for written in node.status.allocatable.values():
        quantity.value(written)


def _read_volume(volume: PersistentVolume) -> None:
    for written in volume.spec.capacity.values():
        quantity.parse(written)
    reach_of(volume)
    identity.of_bound_volume(volume)


def _read_claim(claim: PersistentVolumeClaim) -> None:
    wanted_volume(claim)


def _read_capacity(capacity: CSIStorageCapacity) -> None:
    compile_selector(capacity.node_topology)
    for written in (capacity.maximum_volume_size, capacity.capacity):
        if written is not None:
            quantity.value(written)


def _read_device_claim(claim: ResourceClaim) -> None:
    allocation = claim.status.allocation
    if allocation is not None and allocation.node_selector is not None:
        compile_node_selector(allocation.node_selector)


def _read_selector(obj: PodDisruptionBudget | ReplicaSet | StatefulSet) -> None:
    compile_selector(obj.spec.selector)


_READERS: dict[type, tuple[str, Callable[[Any], None] | None]] = {
    Node: ("status.allocatable", _read_node),
    PersistentVolume: ("spec", _read_volume),
    PersistentVolumeClaim: ("spec", _read_claim),
    CSIStorageCapacity: ("", _read_capacity),
    ResourceClaim: ("status.allocation.nodeSelector", _read_device_claim),
    PodDisruptionBudget: ("spec.selector", _read_selector),
    ReplicaSet: ("spec.selector", _read_selector),
    StatefulSet: ("spec.selector", _read_selector),
}
