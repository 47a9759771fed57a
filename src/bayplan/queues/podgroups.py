"""Pods that use queues, and the PodGroup that is created for those without one.

A pod uses queues if it names a queue, a group or how many pods a group needs, if it asks for the
gate of queue admission, or has it. All others are in a queue without a quota,
need no group, and are scheduled as if there were no queues.
"""

from __future__ import annotations

from bayplan.kube.meta import ObjectMeta, OwnerReference
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import (
    GATE_ANNOTATIONS,
    GROUP_MIN_MEMBER,
    GROUP_NAME_ANNOTATIONS,
    QUEUE_NAME_ANNOTATIONS,
    QUEUE_SCHEDULING_GATE,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
)
from bayplan.queues.members import group_name_of, queue_name_of

_SAYING = frozenset(
    (*GATE_ANNOTATIONS, *GROUP_NAME_ANNOTATIONS, *QUEUE_NAME_ANNOTATIONS, GROUP_MIN_MEMBER)
)
MOST = 2**31 - 1


def uses_queues(pod: Pod) -> bool:
    """Whether a pod is to be admitted by a queue."""
    annotations, gates = pod.metadata.annotations, pod.spec.scheduling_gates
    if annotations and not _SAYING.isdisjoint(annotations):
        return True
    return bool(gates) and any(gate.name == QUEUE_SCHEDULING_GATE for gate in gates)


def names_group(pod: Pod) -> bool:
    """Whether a pod names a PodGroup that others make."""
    annotations = pod.metadata.annotations
    return any(annotations.get(name) for name in GROUP_NAME_ANNOTATIONS)


def group_for(pod: Pod) -> PodGroup:
    """Return the PodGroup to create for a pod without one."""
    meta = pod.metadata
    return PodGroup(
        metadata=ObjectMeta(
            name=group_name_of(pod),
            namespace=pod.namespace,
            creation_timestamp=meta.creation_timestamp,
            owner_references=[_owner(pod)],
        ),
        spec=PodGroupSpec(
            min_member=min_member_of(pod) or 1,
            queue=queue_name_of(pod),
            priority_class_name=pod.spec.priority_class_name,
        ),
        status=PodGroupStatus(phase="Pending"),
    )


def min_member_of(pod: Pod) -> int | None:
    """Return how many pods of its group must start together by a pod's annotation; None if it has
    none, or the value is no such number.
    """
    said = pod.metadata.annotations.get(GROUP_MIN_MEMBER, "")
    number = int(said) if said.isascii() and said.isdigit() and len(said) < 11 else 0
    return number if 1 <= number <= MOST else None


def malformed(pod: Pod) -> str:
    """Return what is wrong with a pod's annotations; empty if nothing."""
    said = pod.metadata.annotations.get(GROUP_MIN_MEMBER)
    if said is None or min_member_of(pod) is not None:
        return ""
    return f"annotation {GROUP_MIN_MEMBER} of pod {pod.name}: {said[:40]!r} is no number of pods"


def _owner(pod: Pod) -> OwnerReference:
    controller = pod.metadata.controller
    if controller is not None and controller.uid:
        return OwnerReference(
            api_version=controller.api_version,
            kind=controller.kind,
            name=controller.name,
            uid=controller.uid,
            controller=True,
        )
    return OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.metadata.uid, controller=True
    )
