"""What goes without saying: the defaults that the API server fills in beyond single fields."""

from __future__ import annotations

from bayplan.kube.codec.kinds import Kind
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod, PodSpec
from bayplan.kube.workloads import DaemonSet

DEFAULT_NAMESPACE = "default"


def settle(obj: KubeObject, kind: Kind) -> KubeObject:
    """The object with its kind, its namespace and the defaults that depend on other fields."""
    obj.kind = kind.name
    obj.api_version = obj.api_version or kind.api_version
    meta = obj.metadata
    if kind.namespaced != bool(meta.namespace):
        meta.namespace = DEFAULT_NAMESPACE if kind.namespaced else ""
    if isinstance(obj, Pod):
        _take_host_ports(obj.spec)
    elif isinstance(obj, DaemonSet):
        _take_host_ports(obj.spec.template.spec)
    elif isinstance(obj, Node) and not obj.status.allocatable:
        obj.status.allocatable = dict(obj.status.capacity)
    return obj


def _take_host_ports(spec: PodSpec) -> None:
    """On the host's network every port of a container is a port of the host."""
    if not spec.host_network:
        return
    for container in (*spec.containers, *spec.init_containers):
        for port in container.ports:
            port.host_port = port.host_port or port.container_port
