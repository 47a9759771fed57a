"""The components of a deployment, each a list of object templates.

A component can be enabled by itself: `bayplan manifests COMPONENT…` prints it, the chart has a
file for it and Kustomize a folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from bayplan.deploy import crds, prometheus, roles
from bayplan.deploy.templates import (
    NAMESPACE,
    Conditional,
    ForEach,
    TemplateNode,
    TextTemplate,
    ValueRef,
)
from bayplan.deploy.workloads import (
    Daemon,
    daemon_set,
    deployment,
    disruption_budget,
    labels,
    network_policy,
    service,
)

_ELECTED: tuple[TemplateNode, ...] = ("--leader-elect-resource-namespace=$(POD_NAMESPACE)",)
SCHEDULER = Daemon(
    "scheduler",
    "scheduler",
    (
        "scheduler",
        ForEach("scheduler.schedulerNames", "--scheduler-name={}"),
        TextTemplate("--leader-elect-resource-name={scheduler.lease}"),
        *_ELECTED,
        TextTemplate("--listen={listenAddress}:10261"),
    ),
    10261,
)
AUTOSCALER = Daemon(
    "autoscaler",
    "autoscaler",
    (
        "autoscaler",
        TextTemplate("--cloud-provider={autoscaler.cloudProvider}"),
        Conditional("autoscaler.cloudConfigSecret", "--cloud-config=/etc/cloud/cloud-config"),
        TextTemplate("--expander={autoscaler.expander}"),
        "--namespace=$(POD_NAMESPACE)",
        *_ELECTED,
        TextTemplate("--listen={listenAddress}:8085"),
    ),
    8085,
    volumes=(
        {
            "name": "cloud",
            # A missing Secret would keep the pod in ContainerCreating; an emptyDir does not.
            "secret": Conditional(
                "autoscaler.cloudConfigSecret",
                {"secretName": ValueRef("autoscaler.cloudConfigSecret")},
            ),
            "emptyDir": Conditional("!autoscaler.cloudConfigSecret", {"sizeLimit": "1Mi"}),
        },
    ),
    mounts=({"name": "cloud", "mountPath": "/etc/cloud", "readOnly": True},),
)
_TLS = "/etc/bayplan/tls"
WEBHOOK = Daemon(
    "webhook",
    "webhook",
    (
        "webhook",
        ForEach("scheduler.schedulerNames", "--scheduler-name={}"),
        "--service=$(POD_NAMESPACE)/bayplan-webhook",
        TextTemplate("--failure-policy={webhook.failurePolicy}"),
        Conditional("webhook.certManager", f"--tls-cert-file={_TLS}/tls.crt"),
        Conditional("webhook.certManager", f"--tls-private-key-file={_TLS}/tls.key"),
        TextTemplate("--listen={listenAddress}:9443"),
        TextTemplate("--health-listen={listenAddress}:10263"),
    ),
    10263,
    ports=(("webhook", 9443),),
    # The TLS library loads certificates from files only.
    volumes=(
        {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        Conditional(
            "webhook.certManager", {"name": "tls", "secret": {"secretName": "bayplan-webhook"}}
        ),
    ),
    mounts=(
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a pod's own
        Conditional("webhook.certManager", {"name": "tls", "mountPath": _TLS, "readOnly": True}),
    ),
    # Until the endpoint is removed from the Service everywhere.
    drain=5,
)
NODE_LIMITS = Daemon(
    "node-limits",
    "nodeLimits",
    (
        "node-agent",
        "--limits",
        "--all-nodes",
        "--limits-file=/etc/bayplan/limits.yaml",
        *_ELECTED,
        TextTemplate("--listen={listenAddress}:10262"),
    ),
    10262,
    volumes=({"name": "limits", "configMap": {"name": "bayplan-node-limits"}},),
    mounts=({"name": "limits", "mountPath": "/etc/bayplan", "readOnly": True},),
    has_log_format=False,
)


def _on_node(name: str, value: str, kind: str) -> TemplateNode:
    folder: TemplateNode = {"path": ValueRef(value), "type": kind}
    return Conditional("nodeAgent.images", {"name": name, "hostPath": folder})


def _mounted(name: str, value: str, **more: TemplateNode) -> TemplateNode:
    return Conditional("nodeAgent.images", {"name": name, "mountPath": ValueRef(value), **more})


NODE_AGENT = Daemon(
    "node-agent",
    "nodeAgent",
    (
        "node-agent",
        Conditional("nodeAgent.limits", "--limits"),
        Conditional("nodeAgent.images", "--images"),
        "--node=$(NODE_NAME)",
        Conditional("nodeAgent.images", TextTemplate("--socket={nodeAgent.criSocket}")),
        Conditional("nodeAgent.images", TextTemplate("--state-dir={nodeAgent.stateFolder}")),
        TextTemplate("--listen={listenAddress}:10262"),
    ),
    10262,
    env=({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},),
    volumes=(
        _on_node("cri", "nodeAgent.criSocket", "Socket"),
        _on_node("images", "nodeAgent.imageFolder", "Directory"),
        _on_node("state", "nodeAgent.stateFolder", "DirectoryOrCreate"),
    ),
    mounts=(
        _mounted("cri", "nodeAgent.criSocket"),
        _mounted("images", "nodeAgent.imageFolder", readOnly=True),
        _mounted("state", "nodeAgent.stateFolder"),
    ),
    root="nodeAgent.images",
    has_log_format=False,
)
DAEMONS = (SCHEDULER, AUTOSCALER, WEBHOOK, NODE_LIMITS, NODE_AGENT)


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the deployment that can be enabled by itself."""

    name: str
    description: str
    switch: str
    """The value that enables it."""
    objects: Callable[[], list[TemplateNode]]
    is_default: bool = True
    """Whether it is enabled by default."""


def _crds() -> list[TemplateNode]:
    made: list[TemplateNode] = []
    for name in crds.ALL:
        found = cast("dict[str, TemplateNode]", crds.definition(name))
        meta = cast("dict[str, TemplateNode]", found["metadata"])
        kept = Conditional("crds.keep", {"helm.sh/resource-policy": "keep"})
        made.append({**found, "metadata": {**meta, "annotations": kept}})
    return made


def _running(
    daemon: Daemon, *more: TemplateNode, kind: Callable[[Daemon], TemplateNode] = deployment
) -> list[TemplateNode]:
    own = labels(daemon.component)
    account = roles.service_account(daemon.name, own)
    granted = roles.role_objects(
        daemon.name, own, roles.BY_COMPONENT[daemon.component], daemon.name
    )
    return [account, *granted, *more, kind(daemon)]


def _scheduler() -> list[TemplateNode]:
    return _running(SCHEDULER, service(SCHEDULER), disruption_budget(SCHEDULER))


def _autoscaler() -> list[TemplateNode]:
    return _running(AUTOSCALER, service(AUTOSCALER), disruption_budget(AUTOSCALER))


def _cluster_api() -> list[TemplateNode]:
    name, owner = "bayplan-autoscaler-clusterapi", labels("autoscaler")
    return roles.role_objects(name, owner, roles.Roles(roles.CLUSTER_API), AUTOSCALER.name)


def _webhook() -> list[TemplateNode]:
    return _running(
        WEBHOOK,
        *_certificate(),
        service(WEBHOOK, ("webhook", 443, "webhook")),
        disruption_budget(WEBHOOK),
    )


def _certificate() -> list[TemplateNode]:
    """Return cert-manager's Issuer and Certificate."""
    api = "cert-manager.io/v1"
    meta: TemplateNode = {
        "name": WEBHOOK.name,
        "namespace": ValueRef(NAMESPACE),
        "labels": labels(WEBHOOK.component),
    }
    issuer: TemplateNode = {
        "apiVersion": api,
        "kind": "Issuer",
        "metadata": meta,
        "spec": {"selfSigned": {}},
    }
    service_name = "bayplan-webhook.{namespace}.svc"
    spec: TemplateNode = {
        "secretName": WEBHOOK.name,
        "dnsNames": [TextTemplate(service_name), TextTemplate(f"{service_name}.cluster.local")],
        "issuerRef": {"kind": "Issuer", "name": WEBHOOK.name},
    }
    certificate: TemplateNode = {
        "apiVersion": api,
        "kind": "Certificate",
        "metadata": meta,
        "spec": spec,
    }
    return [Conditional("webhook.certManager", one) for one in (issuer, certificate)]


def _node_limits() -> list[TemplateNode]:
    meta: TemplateNode = {
        "name": NODE_LIMITS.name,
        "namespace": ValueRef(NAMESPACE),
        "labels": labels(NODE_LIMITS.component),
    }
    data: TemplateNode = {"limits.yaml": ValueRef("nodeLimits.limits")}
    tables: TemplateNode = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    return _running(NODE_LIMITS, tables, service(NODE_LIMITS), disruption_budget(NODE_LIMITS))


def _node_agent() -> list[TemplateNode]:
    return _running(NODE_AGENT, service(NODE_AGENT), kind=daemon_set)


def _reader() -> list[TemplateNode]:
    return [roles.cluster_role("bayplan-reader", labels("reader"), roles.READER.cluster)]


def _network_policies() -> list[TemplateNode]:
    return [Conditional(f"{one.values}.enabled", network_policy(one)) for one in DAEMONS]


def _monitoring() -> list[TemplateNode]:
    monitors: list[TemplateNode] = [
        Conditional(f"{one.values}.enabled", prometheus.service_monitor(one)) for one in DAEMONS
    ]
    return [*monitors, prometheus.alert_rules(), prometheus.dashboard_map()]


COMPONENTS = (
    Component("crds", "definitions of Queue, PodGroup and NodeGroup", "crds.enabled", _crds),
    Component("scheduler", "schedules pods", "scheduler.enabled", _scheduler),
    Component("autoscaler", "scales node groups up and down", "autoscaler.enabled", _autoscaler),
    Component(
        "autoscaler-clusterapi",
        "the autoscaler's role for Cluster API",
        "autoscaler.clusterApi",
        _cluster_api,
        is_default=False,
    ),
    Component("webhook", "gates pods of queues, validates queues", "webhook.enabled", _webhook),
    Component(
        "node-limits",
        "publishes the attach limits of all nodes",
        "nodeLimits.enabled",
        _node_limits,
        is_default=False,
    ),
    Component(
        "node-agent",
        "runs on every node: publishes its attach limits, manages its images",
        "nodeAgent.enabled",
        _node_agent,
        is_default=False,
    ),
    Component("reader", "a read-only ClusterRole for users", "reader.enabled", _reader),
    Component(
        "monitoring",
        "ServiceMonitors, alerts and a dashboard",
        "monitoring.enabled",
        _monitoring,
        is_default=False,
    ),
    Component(
        "network-policies",
        "allow ingress to served ports only",
        "networkPolicies.enabled",
        _network_policies,
        is_default=False,
    ),
)
BY_NAME = {one.name: one for one in COMPONENTS}
