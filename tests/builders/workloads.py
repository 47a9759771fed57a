"""Builders of what makes, guards and groups pods."""

from __future__ import annotations

from typing import Self

from bayplan.kube.meta import LabelSelector, Quantity
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import (
    DaemonSet,
    Namespace,
    Overhead,
    PodDisruptionBudget,
    PodTemplate,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    RuntimeClassScheduling,
    Service,
    StatefulSet,
)
from tests.builders.base import DEFAULT, Builder
from tests.builders.selectors import selector


class PDBBuilder(Builder[PodDisruptionBudget]):
    """A promise to keep pods running."""

    def __init__(self, name: str, label_selector: LabelSelector | None, namespace: str) -> None:
        super().__init__(PodDisruptionBudget(), name, namespace)
        self._built.spec.selector = label_selector

    def allows(self, disruptions: int) -> Self:
        """Say how many pods may be evicted now."""
        self._built.status.disruptions_allowed = disruptions
        return self


class RuntimeClassBuilder(Builder[RuntimeClass]):
    """A runtime class."""

    def __init__(self, name: str, handler: str) -> None:
        super().__init__(RuntimeClass(handler=handler), name)

    def overhead(self, **amounts: Quantity) -> Self:
        """Say what it adds to each pod."""
        self._built.overhead = Overhead(pod_fixed=dict(amounts))
        return self

    def node_selector(self, **labels: str) -> Self:
        """Say where its pods can run."""
        self._built.scheduling = RuntimeClassScheduling(node_selector=dict(labels))
        return self


def make_pdb(
    name: str, label_selector: LabelSelector | None, namespace: str = DEFAULT
) -> PDBBuilder:
    """Start a disruption budget."""
    return PDBBuilder(name, label_selector, namespace)


def make_runtime_class(name: str, handler: str = "") -> RuntimeClassBuilder:
    """Start a runtime class."""
    return RuntimeClassBuilder(name, handler or name)


def make_namespace(name: str) -> Builder[Namespace]:
    """Start a namespace."""
    return Builder(Namespace(), name)


def make_priority_class(name: str, value: int) -> Builder[PriorityClass]:
    """Start a priority class."""
    return Builder(PriorityClass(value=value), name)


def make_service(name: str, namespace: str = DEFAULT, **match: str) -> Builder[Service]:
    """Start a service for pods with these labels."""
    built = Service()
    built.spec.selector = dict(match)
    return Builder(built, name, namespace)


def make_replication_controller(
    name: str, namespace: str = DEFAULT, **match: str
) -> Builder[ReplicationController]:
    """Start a replication controller for pods with these labels."""
    built = ReplicationController()
    built.spec.selector = dict(match)
    return Builder(built, name, namespace)


def make_replica_set(name: str, namespace: str = DEFAULT, **match: str) -> Builder[ReplicaSet]:
    """Start a replica set for pods with these labels."""
    built = ReplicaSet()
    built.spec.selector = selector(match)
    return Builder(built, name, namespace)


def make_stateful_set(name: str, namespace: str = DEFAULT, **match: str) -> Builder[StatefulSet]:
    """Start a stateful set for pods with these labels."""
    built = StatefulSet()
    built.spec.selector = selector(match)
    return Builder(built, name, namespace)


def make_daemon_set(name: str, pod: Pod, namespace: str = DEFAULT) -> Builder[DaemonSet]:
    """Start a DaemonSet of pods like this one."""
    built = DaemonSet()
    built.spec.selector = selector(pod.metadata.labels)
    built.spec.template = PodTemplate(metadata=pod.metadata, spec=pod.spec)
    return Builder(built, name, namespace)
