"""Checks of workloads, services, budgets and runtime classes."""

from __future__ import annotations

from bayplan.kube.validation import fields
from bayplan.kube.validation.pods import check_template
from bayplan.kube.workloads import (
    DaemonSet,
    PodDisruptionBudget,
    ReplicaSet,
    RuntimeClass,
    Service,
    StatefulSet,
)


def check_selector(workload: ReplicaSet | StatefulSet | DaemonSet | PodDisruptionBudget) -> None:
    """Check the selector of a workload or a budget."""
    fields.selector("spec.selector", workload.spec.selector)


def check_daemon_set(daemon_set: DaemonSet) -> None:
    """Check a DaemonSet and its pod template."""
    check_selector(daemon_set)
    template = daemon_set.spec.template
    fields.labels("spec.template.metadata.labels", template.metadata.labels)
    check_template("spec.template.spec", template.spec)


def check_service(service: Service) -> None:
    """Check the selector of a service or a replication controller."""
    fields.labels("spec.selector", service.spec.selector)


def check_runtime_class(runtime_class: RuntimeClass) -> None:
    """Check a runtime class."""
    if runtime_class.overhead is not None:
        fields.amounts("overhead.podFixed", runtime_class.overhead.pod_fixed)
    if runtime_class.scheduling is not None:
        fields.labels("scheduling.nodeSelector", runtime_class.scheduling.node_selector)
