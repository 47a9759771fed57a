"""Less memory for the same objects: texts that thousands of objects repeat are kept once.

The decoder makes a new string for every value it reads. In a dump of a large cluster a third of the
memory is copies of the same few hundred texts.
"""

from __future__ import annotations

from sys import intern

from msgspec.structs import replace

from bayplan.kube.meta import Condition, KubeObject, ObjectMeta
from bayplan.kube.pods import Container, Pod, PodSpec, PodStatus

_COPY_OF_ITSELF = "kubectl.kubernetes.io/last-applied-configuration"


def slim(obj: KubeObject) -> None:
    """Share the texts of an object that are likely to be repeated in others."""
    slim_around(obj)
    if isinstance(obj, Pod):
        _slim_spec(obj.spec)


def slim_around(obj: KubeObject) -> None:
    """The same for an object whose spec needs no more of it."""
    _slim_meta(obj.metadata)
    if isinstance(obj, Pod):
        _slim_status(obj.status)


def keep_spec(pod: Pod, before: Pod) -> bool:
    """Let a pod keep the spec that it had before, if it says the same but for the node."""
    known, node = before.spec, pod.spec.node_name
    pod.spec.node_name = known.node_name
    same = pod.spec == known
    pod.spec.node_name = node
    if same:
        pod.spec = known if node == known.node_name else replace(known, node_name=intern(node))
    return same


def _slim_meta(meta: ObjectMeta) -> None:
    meta.annotations.pop(_COPY_OF_ITSELF, None)
    meta.namespace = intern(meta.namespace)
    meta.labels = {key: intern(value) for key, value in meta.labels.items()}
    if meta.creation_timestamp is not None:
        meta.creation_timestamp = intern(meta.creation_timestamp)
    for owner in meta.owner_references:
        owner.api_version, owner.kind = intern(owner.api_version), intern(owner.kind)
        owner.name, owner.uid = intern(owner.name), intern(owner.uid)


def _slim_spec(spec: PodSpec) -> None:
    spec.node_name = intern(spec.node_name)
    for container in spec.containers:
        _slim_container(container)
    for toleration in spec.tolerations:
        toleration.key = intern(toleration.key)


def _slim_status(status: PodStatus) -> None:
    for condition in status.conditions:
        _slim_condition(condition)
    status.phase = intern(status.phase)
    # All that is read of a container's status is a resize; without one nothing is left to read.
    if not any(s.allocated_resources or s.resources for s in status.container_statuses):
        status.container_statuses = []


def _slim_container(container: Container) -> None:
    container.name, container.image = intern(container.name), intern(container.image)
    resources = container.resources
    for amounts in (resources.requests, resources.limits):
        for name, written in amounts.items():
            if isinstance(written, str):
                amounts[name] = intern(written)


def _slim_condition(condition: Condition) -> None:
    condition.type, condition.status = intern(condition.type), intern(condition.status)
    condition.reason = intern(condition.reason)
    if condition.last_transition_time is not None:
        condition.last_transition_time = intern(condition.last_transition_time)
