"""What a pod (or a template of pods) is when its author says nothing about it."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import child, fill, items

_MODES = ("secret", "configMap", "downwardAPI", "projected")
_CONTAINERS = ("initContainers", "containers")


def default_pod_spec(spec: JsonObject) -> None:
    """Fill in a pod's spec."""
    fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
    )
    child(spec, "securityContext")
    for name in _CONTAINERS:
        for container in items(spec, name):
            _default_container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in items(spec, "volumes"):
        _default_volume(volume)


def _default_container(container: JsonObject, *, host_network: bool) -> None:
    fill(
        container,
        imagePullPolicy=_pull_policy(container.get("image") or ""),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    default_requests(child(container, "resources"))
    for port in items(container, "ports"):
        fill(port, protocol="TCP")
        if host_network:
            fill(port, hostPort=port.get("containerPort"))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name):
            _default_probe(container[name])
    for variable in items(container, "env"):
        _default_variable(variable)


def _pull_policy(image: str) -> str:
    name = image.rpartition("/")[2]
    if "@" in name:
        return "IfNotPresent"
    tag = name.partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def default_requests(resources: JsonObject) -> None:
    """A container asks for what it is limited to, unless it says otherwise."""
    limits = resources.get("limits")
    if limits:
        fill(child(resources, "requests"), **limits)


def _default_probe(probe: JsonObject) -> None:
    fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if probe.get("httpGet"):
        fill(probe["httpGet"], path="/", scheme="HTTP")
    if probe.get("grpc"):
        fill(probe["grpc"], service="")


def _default_variable(variable: JsonObject) -> None:
    reference = (variable.get("valueFrom") or {}).get("fieldRef")
    if reference:
        fill(reference, apiVersion="v1")


def _default_volume(volume: JsonObject) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for name in _MODES:
        if volume.get(name) is not None:
            fill(volume[name], defaultMode=0o644)
    if volume.get("hostPath") is not None:
        fill(volume["hostPath"], type="")
    if volume.get("iscsi") is not None:
        fill(volume["iscsi"], iscsiInterface="default")
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template and template.get("spec") is not None:
        fill(template["spec"], volumeMode="Filesystem")
