"""Deployments, DaemonSets, Services, disruption budgets and network policies of the daemons."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.deploy.templates import (
    NAMESPACE,
    VERSION,
    Conditional,
    ForEach,
    TemplateNode,
    TextTemplate,
    ValueRef,
)

NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
METRICS = "metrics"


def labels(component: str) -> dict[str, TemplateNode]:
    """Return the labels of all objects of a component."""
    return {**selector_labels(component), "app.kubernetes.io/version": ValueRef(VERSION)}


def selector_labels(component: str) -> dict[str, TemplateNode]:
    """Return the labels by which selectors find a component's pods."""
    return {NAME: "bayplan", COMPONENT: component}


@dataclass(frozen=True, slots=True)
class Daemon:
    """The settings of a daemon that differ from other daemons'."""

    component: str
    """Its name without `bayplan-`, and the label of its pods."""
    values: str
    """Its section of the values."""
    command: tuple[TemplateNode, ...]
    port: int
    """The port of health and metrics."""
    ports: tuple[tuple[str, int], ...] = ()
    """Other ports, by name."""
    volumes: tuple[TemplateNode, ...] = ()
    mounts: tuple[TemplateNode, ...] = ()
    env: tuple[TemplateNode, ...] = ()
    grace: int = 15
    drain: int = 0
    """Seconds for which it still serves requests after its termination began."""
    root: str = ""
    """The value that makes it run as root; never as root if empty."""
    has_log_format: bool = True

    @property
    def name(self) -> str:
        """Return the name of all its objects."""
        return f"bayplan-{self.component}"

    def value(self, name: str) -> str:
        """Return the path of a value in its section."""
        return f"{self.values}.{name}"


def _meta(daemon: Daemon) -> TemplateNode:
    namespace = ValueRef(NAMESPACE)
    return {"name": daemon.name, "namespace": namespace, "labels": labels(daemon.component)}


def deployment(daemon: Daemon) -> TemplateNode:
    """Return a Deployment whose replicas are spread over nodes and zones where possible."""
    selector: TemplateNode = {"matchLabels": selector_labels(daemon.component)}
    spread: list[TemplateNode] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selector,
        }
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(daemon),
        "spec": {
            "replicas": ValueRef(daemon.value("replicas")),
            "selector": selector,
            "template": _template(daemon, {"topologySpreadConstraints": spread}),
        },
    }


def daemon_set(daemon: Daemon) -> TemplateNode:
    """Return a DaemonSet."""
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _meta(daemon),
        "spec": {
            "selector": {"matchLabels": selector_labels(daemon.component)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": _template(daemon, {}),
        },
    }


def disruption_budget(daemon: Daemon) -> TemplateNode:
    """Return a budget of one unavailable pod; unhealthy pods may always be evicted."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _meta(daemon),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": selector_labels(daemon.component)},
        },
    }


def service(daemon: Daemon, *ports: tuple[str, int, str]) -> TemplateNode:
    """Return a Service of metrics and other ports, given as name, port and target port."""
    served = [*ports, (METRICS, daemon.port, METRICS)]
    shown: list[TemplateNode] = [
        {"name": name, "port": port, "targetPort": target} for name, port, target in served
    ]
    headless: dict[str, TemplateNode] = {} if ports else {"clusterIP": "None"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(daemon),
        "spec": {**headless, "selector": dict(selector_labels(daemon.component)), "ports": shown},
    }


def network_policy(daemon: Daemon) -> TemplateNode:
    """Return a policy that allows ingress to served ports only; egress is not restricted."""
    ports: list[TemplateNode] = [{"protocol": "TCP", "port": name} for name, _ in _ports(daemon)]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(daemon),
        "spec": {
            "podSelector": {"matchLabels": selector_labels(daemon.component)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": ports}],
        },
    }


def _ports(daemon: Daemon) -> list[tuple[str, int]]:
    return [*daemon.ports, (METRICS, daemon.port)]


def _template(daemon: Daemon, more: dict[str, TemplateNode]) -> TemplateNode:
    annotations = Conditional(daemon.value("podAnnotations"))
    volumes: dict[str, TemplateNode] = {"volumes": list(daemon.volumes)} if daemon.volumes else {}
    return {
        "metadata": {"labels": dict(labels(daemon.component)), "annotations": annotations},
        "spec": {
            "serviceAccountName": daemon.name,
            "priorityClassName": Conditional(daemon.value("priorityClassName")),
            "terminationGracePeriodSeconds": daemon.grace + daemon.drain,
            "imagePullSecrets": Conditional("imagePullSecrets"),
            "nodeSelector": Conditional(daemon.value("nodeSelector")),
            "tolerations": Conditional(daemon.value("tolerations")),
            "affinity": Conditional(daemon.value("affinity")),
            **more,
            "containers": [_container(daemon)],
            **volumes,
        },
    }


def _container(daemon: Daemon) -> TemplateNode:
    lifecycle: dict[str, TemplateNode] = {}
    if daemon.drain:
        lifecycle["lifecycle"] = {"preStop": {"sleep": {"seconds": daemon.drain}}}
    namespace: TemplateNode = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    mounts: dict[str, TemplateNode] = {"volumeMounts": list(daemon.mounts)} if daemon.mounts else {}
    return {
        "name": daemon.component,
        "image": ValueRef("image"),
        "imagePullPolicy": ValueRef("imagePullPolicy"),
        "command": ["bayplan", *daemon.command[:1]],
        "args": [*daemon.command[1:], *_common_args(daemon), ForEach(daemon.value("extraArgs"))],
        "env": [{"name": "POD_NAMESPACE", "valueFrom": namespace}, *daemon.env],
        "ports": [{"name": name, "containerPort": port} for name, port in _ports(daemon)],
        **lifecycle,
        "livenessProbe": {
            "httpGet": {"path": "/livez", "port": METRICS},
            "failureThreshold": 8,
            "timeoutSeconds": 15,
        },
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": METRICS}},
        "resources": ValueRef(daemon.value("resources")),
        **mounts,
        "securityContext": _security(daemon),
    }


def _common_args(daemon: Daemon) -> list[TemplateNode]:
    gates: list[TemplateNode] = [
        Conditional("featureGates", TextTemplate("--feature-gates={featureGates}"))
    ]
    return [*gates, TextTemplate("--log-format={logFormat}")] if daemon.has_log_format else gates


def _security(daemon: Daemon) -> TemplateNode:
    """Return the least privileges; as root only for files on a node that belong to root."""
    user: dict[str, TemplateNode] = {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532}
    if daemon.root:
        user = {
            "runAsNonRoot": Conditional(f"!{daemon.root}", True),
            "runAsUser": Conditional(daemon.root, 0),
        }
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        **user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
