"""Less memory for the same objects: texts that thousands of objects repeat are kept once.

The decoder makes a new string for every value it reads. In a dump of a large cluster a third of the
memory is copies of the same few hundred texts.
"""

from __future__ import annotations

from sys import intern

from bayplan.kube.meta import Condition, KubeObject, ObjectMeta
from bayplan.kube.pods import Container, Pod

_COPY_OF_ITSELF = "kubectl.kubernetes.io/last-applied-configuration"


def slim(obj: KubeObject) -> None:
    """Share the texts of an object that are likely to be repeated in others."""
    _slim_meta(obj.metadata)
    if isinstance(obj, Pod):
        _slim_pod(obj)


def _slim_meta(meta: ObjectMeta) -> None:
    meta.annotations.pop(_COPY_OF_ITSELF, None)
    meta.namespace = intern(meta.namespace)
    meta.labels = {key: intern(value) for key, value in meta.labels.items()}
    if meta.creation_timestamp is not None:
        meta.creation_timestamp = intern(meta.creation_timestamp)
    for owner in meta.owner_references:
        owner.api_version, owner.kind = intern(owner.api_version), intern(owner.kind)
        owner.name, owner.uid = intern(owner.name), intern(owner.uid)


def _slim_pod(pod: Pod) -> None:
    spec, status = pod.spec, pod.status
    spec.node_name = intern(spec.node_name)
    for container in spec.containers:
        _slim_container(container)
    for toleration in spec.tolerations:
        toleration.key = intern(toleration.key)
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
