"""Deployments and DaemonSets of daemons: how they are started, watched, and kept apart."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.deploy.holes import NAMESPACE, VERSION, Each, Node, Text, Value, When

NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
METRICS = "metrics"


def labels(component: str) -> dict[str, Node]:
    """The labels of everything that belongs to a part."""
    return {**chosen(component), "app.kubernetes.io/version": Value(VERSION)}


def chosen(component: str) -> dict[str, Node]:
    """The labels by which its pods are found."""
    return {NAME: "bayplan", COMPONENT: component}


@dataclass(frozen=True, slots=True)
class Daemon:
    """What differs from one daemon to the next."""

    component: str
    """Its name without `bayplan-`, and the label of its pods."""
    values: str
    """Its field of the values."""
    command: tuple[Node, ...]
    port: int
    """Of health and metrics."""
    ports: tuple[tuple[str, int], ...] = ()
    """Others, by name."""
    volumes: tuple[Node, ...] = ()
    mounts: tuple[Node, ...] = ()
    env: tuple[Node, ...] = ()
    grace: int = 15
    drain: int = 0
    """Seconds for which it still answers after it was told to go."""
    root: str = ""
    """The value that makes it run as root, if there is one."""
    says_logs: bool = True

    @property
    def name(self) -> str:
        """The name of all its objects."""
        return f"bayplan-{self.component}"

    def value(self, name: str) -> str:
        """The path of a value of its own."""
        return f"{self.values}.{name}"


def _meta(daemon: Daemon) -> Node:
    where = Value(NAMESPACE)
    return {"name": daemon.name, "namespace": where, "labels": labels(daemon.component)}


def deployment(daemon: Daemon) -> Node:
    """So many replicas, apart from each other where nodes allow it."""
    selector: Node = {"matchLabels": chosen(daemon.component)}
    spread: list[Node] = [
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
            "replicas": Value(daemon.value("replicas")),
            "selector": selector,
            "template": _template(daemon, {"topologySpreadConstraints": spread}),
        },
    }


def daemon_set(daemon: Daemon) -> Node:
    """One on every node, whatever is wrong with the node."""
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _meta(daemon),
        "spec": {
            "selector": {"matchLabels": chosen(daemon.component)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": _template(daemon, {}),
        },
    }


def disruption_budget(daemon: Daemon) -> Node:
    """One at a time, and never one that is broken anyway."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _meta(daemon),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": chosen(daemon.component)},
        },
    }


def service(daemon: Daemon, *ports: tuple[str, int, str]) -> Node:
    """Where its metrics are, and what else it serves, as name, port and the pods' port."""
    served = [*ports, (METRICS, daemon.port, METRICS)]
    shown: list[Node] = [
        {"name": name, "port": port, "targetPort": target} for name, port, target in served
    ]
    headless: dict[str, Node] = {} if ports else {"clusterIP": "None"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(daemon),
        "spec": {**headless, "selector": dict(chosen(daemon.component)), "ports": shown},
    }


def network_policy(daemon: Daemon) -> Node:
    """Nobody comes in but to the ports that are served; what goes out is not bound."""
    ports: list[Node] = [{"protocol": "TCP", "port": name} for name, _ in _ports(daemon)]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(daemon),
        "spec": {
            "podSelector": {"matchLabels": chosen(daemon.component)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": ports}],
        },
    }


def _ports(daemon: Daemon) -> list[tuple[str, int]]:
    return [*daemon.ports, (METRICS, daemon.port)]


def _template(daemon: Daemon, more: dict[str, Node]) -> Node:
    annotations = When(daemon.value("podAnnotations"))
    volumes: dict[str, Node] = {"volumes": list(daemon.volumes)} if daemon.volumes else {}
    return {
        "metadata": {"labels": dict(labels(daemon.component)), "annotations": annotations},
        "spec": {
            "serviceAccountName": daemon.name,
            "priorityClassName": When(daemon.value("priorityClassName")),
            "terminationGracePeriodSeconds": daemon.grace + daemon.drain,
            "imagePullSecrets": When("imagePullSecrets"),
            "nodeSelector": When(daemon.value("nodeSelector")),
            "tolerations": When(daemon.value("tolerations")),
            "affinity": When(daemon.value("affinity")),
            **more,
            "containers": [_container(daemon)],
            **volumes,
        },
    }


def _container(daemon: Daemon) -> Node:
    lasting: dict[str, Node] = {}
    if daemon.drain:
        lasting["lifecycle"] = {"preStop": {"sleep": {"seconds": daemon.drain}}}
    namespace: Node = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    mounts: dict[str, Node] = {"volumeMounts": list(daemon.mounts)} if daemon.mounts else {}
    return {
        "name": daemon.component,
        "image": Value("image"),
        "imagePullPolicy": Value("imagePullPolicy"),
        "command": ["bayplan", *daemon.command[:1]],
        "args": [*daemon.command[1:], *_usual(daemon), Each(daemon.value("extraArgs"))],
        "env": [{"name": "POD_NAMESPACE", "valueFrom": namespace}, *daemon.env],
        "ports": [{"name": name, "containerPort": port} for name, port in _ports(daemon)],
        **lasting,
        "livenessProbe": {
            "httpGet": {"path": "/livez", "port": METRICS},
            "failureThreshold": 8,
            "timeoutSeconds": 15,
        },
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": METRICS}},
        "resources": Value(daemon.value("resources")),
        **mounts,
        "securityContext": _security(daemon),
    }


def _usual(daemon: Daemon) -> list[Node]:
    said: list[Node] = [When("featureGates", Text("--feature-gates={featureGates}"))]
    return [*said, Text("--log-format={logFormat}")] if daemon.says_logs else said


def _security(daemon: Daemon) -> Node:
    """Nothing that it does not need; as root only what root's own files on a node ask for."""
    who: dict[str, Node] = {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532}
    if daemon.root:
        who = {
            "runAsNonRoot": When(f"!{daemon.root}", True),
            "runAsUser": When(daemon.root, 0),
        }
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        **who,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
