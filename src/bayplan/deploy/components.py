"""The parts of a deployment, each a list of objects with holes.

A part is what can be switched on by itself: `bayplan manifests PART…` prints it, the chart has a
file for it and Kustomize a folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from bayplan.deploy import crds, monitoring, roles
from bayplan.deploy.holes import NAMESPACE, Each, Node, Text, Value, When
from bayplan.deploy.workloads import (
    Daemon,
    daemon_set,
    deployment,
    disruption_budget,
    labels,
    network_policy,
    service,
)

_ELECTED: tuple[Node, ...] = ("--leader-elect-resource-namespace=$(POD_NAMESPACE)",)
SCHEDULER = Daemon(
    "scheduler",
    "scheduler",
    (
        "scheduler",
        Each("scheduler.schedulerNames", "--scheduler-name={}"),
        Text("--leader-elect-resource-name={scheduler.lease}"),
        *_ELECTED,
        Text("--listen={listenAddress}:10261"),
    ),
    10261,
)
AUTOSCALER = Daemon(
    "autoscaler",
    "autoscaler",
    (
        "autoscaler",
        Text("--cloud-provider={autoscaler.cloudProvider}"),
        When("autoscaler.cloudConfigSecret", "--cloud-config=/etc/cloud/cloud-config"),
        Text("--expander={autoscaler.expander}"),
        "--namespace=$(POD_NAMESPACE)",
        *_ELECTED,
        Text("--listen={listenAddress}:8085"),
    ),
    8085,
    volumes=(
        {
            "name": "cloud",
            # What is not there yet when a pod starts keeps it waiting; nothing to mount does not.
            "secret": When(
                "autoscaler.cloudConfigSecret",
                {"secretName": Value("autoscaler.cloudConfigSecret")},
            ),
            "emptyDir": When("!autoscaler.cloudConfigSecret", {"sizeLimit": "1Mi"}),
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
        Each("scheduler.schedulerNames", "--scheduler-name={}"),
        "--service=$(POD_NAMESPACE)/bayplan-webhook",
        Text("--failure-policy={webhook.failurePolicy}"),
        When("webhook.certManager", f"--tls-cert-file={_TLS}/tls.crt"),
        When("webhook.certManager", f"--tls-private-key-file={_TLS}/tls.key"),
        Text("--listen={listenAddress}:9443"),
        Text("--health-listen={listenAddress}:10263"),
    ),
    10263,
    ports=(("webhook", 9443),),
    # A certificate passes through a file before it can be shown.
    volumes=(
        {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        When("webhook.certManager", {"name": "tls", "secret": {"secretName": "bayplan-webhook"}}),
    ),
    mounts=(
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a pod's own
        When("webhook.certManager", {"name": "tls", "mountPath": _TLS, "readOnly": True}),
    ),
    # Until nobody is sent here any more.
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
        Text("--listen={listenAddress}:10262"),
    ),
    10262,
    volumes=({"name": "limits", "configMap": {"name": "bayplan-node-limits"}},),
    mounts=({"name": "limits", "mountPath": "/etc/bayplan", "readOnly": True},),
    says_logs=False,
)


def _on_node(name: str, value: str, kind: str) -> Node:
    folder: Node = {"path": Value(value), "type": kind}
    return When("nodeAgent.images", {"name": name, "hostPath": folder})


def _mounted(name: str, value: str, **more: Node) -> Node:
    return When("nodeAgent.images", {"name": name, "mountPath": Value(value), **more})


NODE_AGENT = Daemon(
    "node-agent",
    "nodeAgent",
    (
        "node-agent",
        When("nodeAgent.limits", "--limits"),
        When("nodeAgent.images", "--images"),
        "--node=$(NODE_NAME)",
        When("nodeAgent.images", Text("--socket={nodeAgent.criSocket}")),
        When("nodeAgent.images", Text("--state-dir={nodeAgent.stateFolder}")),
        Text("--listen={listenAddress}:10262"),
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
    says_logs=False,
)
DAEMONS = (SCHEDULER, AUTOSCALER, WEBHOOK, NODE_LIMITS, NODE_AGENT)


@dataclass(frozen=True, slots=True)
class Component:
    """A part that can be there or not."""

    name: str
    why: str
    switch: str
    """The value that says whether it is there."""
    objects: Callable[[], list[Node]]
    usual: bool = True
    """Whether it is there unless somebody says otherwise."""


def _kinds() -> list[Node]:
    made: list[Node] = []
    for name in crds.ALL:
        found = cast("dict[str, Node]", crds.definition(name))
        meta = cast("dict[str, Node]", found["metadata"])
        kept = When("crds.keep", {"helm.sh/resource-policy": "keep"})
        made.append({**found, "metadata": {**meta, "annotations": kept}})
    return made


def _running(
    daemon: Daemon, *more: Node, kind: Callable[[Daemon], Node] = deployment
) -> list[Node]:
    whose = labels(daemon.component)
    account = roles.account(daemon.name, whose)
    granted = roles.granted(daemon.name, whose, roles.BY_PART[daemon.component], daemon.name)
    return [account, *granted, *more, kind(daemon)]


def _scheduler() -> list[Node]:
    return _running(SCHEDULER, service(SCHEDULER), disruption_budget(SCHEDULER))


def _autoscaler() -> list[Node]:
    return _running(AUTOSCALER, service(AUTOSCALER), disruption_budget(AUTOSCALER))


def _cluster_api() -> list[Node]:
    name, part = "bayplan-autoscaler-clusterapi", "autoscaler"
    return roles.granted(name, labels(part), roles.Roles(roles.CLUSTER_API), AUTOSCALER.name)


def _webhook() -> list[Node]:
    return _running(
        WEBHOOK,
        *_certificate(),
        service(WEBHOOK, ("webhook", 443, "webhook")),
        disruption_budget(WEBHOOK),
    )


def _certificate() -> list[Node]:
    """cert-manager's part: who signs, and what."""
    api = "cert-manager.io/v1"
    meta: Node = {
        "name": WEBHOOK.name,
        "namespace": Value(NAMESPACE),
        "labels": labels(WEBHOOK.component),
    }
    issuer: Node = {
        "apiVersion": api,
        "kind": "Issuer",
        "metadata": meta,
        "spec": {"selfSigned": {}},
    }
    service_name = "bayplan-webhook.{namespace}.svc"
    spec: Node = {
        "secretName": WEBHOOK.name,
        "dnsNames": [Text(service_name), Text(f"{service_name}.cluster.local")],
        "issuerRef": {"kind": "Issuer", "name": WEBHOOK.name},
    }
    asked: Node = {"apiVersion": api, "kind": "Certificate", "metadata": meta, "spec": spec}
    return [When("webhook.certManager", one) for one in (issuer, asked)]


def _node_limits() -> list[Node]:
    meta: Node = {
        "name": NODE_LIMITS.name,
        "namespace": Value(NAMESPACE),
        "labels": labels(NODE_LIMITS.component),
    }
    data: Node = {"limits.yaml": Value("nodeLimits.limits")}
    tables: Node = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    return _running(NODE_LIMITS, tables, service(NODE_LIMITS), disruption_budget(NODE_LIMITS))


def _node_agent() -> list[Node]:
    return _running(NODE_AGENT, service(NODE_AGENT), kind=daemon_set)


def _reader() -> list[Node]:
    return [roles.cluster_role("bayplan-reader", labels("reader"), roles.READER.cluster)]


def _network_policies() -> list[Node]:
    return [When(f"{one.values}.enabled", network_policy(one)) for one in DAEMONS]


def _monitoring() -> list[Node]:
    watched: list[Node] = [
        When(f"{one.values}.enabled", monitoring.service_monitor(one)) for one in DAEMONS
    ]
    return [*watched, monitoring.rules(), monitoring.dashboard_map()]


COMPONENTS = (
    Component("crds", "the kinds Queue, PodGroup and NodeGroup", "crds.enabled", _kinds),
    Component("scheduler", "places pods", "scheduler.enabled", _scheduler),
    Component("autoscaler", "buys nodes and gives them back", "autoscaler.enabled", _autoscaler),
    Component(
        "autoscaler-clusterapi",
        "what the autoscaler may do where Cluster API is the cloud",
        "autoscaler.clusterApi",
        _cluster_api,
        usual=False,
    ),
    Component("webhook", "gates pods of queues, judges queues", "webhook.enabled", _webhook),
    Component(
        "node-limits",
        "publishes the attach limits of all nodes",
        "nodeLimits.enabled",
        _node_limits,
        usual=False,
    ),
    Component(
        "node-agent",
        "publishes a node's attach limits, and serves its images, from the node",
        "nodeAgent.enabled",
        _node_agent,
        usual=False,
    ),
    Component("reader", "the role of whoever only asks", "reader.enabled", _reader),
    Component(
        "monitoring",
        "ServiceMonitors, alerts and a dashboard",
        "monitoring.enabled",
        _monitoring,
        usual=False,
    ),
    Component(
        "network-policies",
        "let nobody in but to the ports that are served",
        "networkPolicies.enabled",
        _network_policies,
        usual=False,
    ),
)
BY_NAME = {one.name: one for one in COMPONENTS}
