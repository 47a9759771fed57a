"""A healthy cluster, and what is found in clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from bayplan.checks import CheckedCluster, Finding, check
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import NodeSystemInfo
from tests.builders import (
    NodeBuilder,
    make_attachment,
    make_csidriver,
    make_csinode,
    make_node,
    make_pdb,
    make_pod,
    make_pod_group,
    make_pv,
    make_pvc,
    make_queue,
    make_storage_class,
    node_term,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD, NEW = "2026-01-01T11:00:00Z", "2026-01-01T11:59:00Z"
DISK = "disk.csi.example.com"
ZONE = "topology.kubernetes.io/zone"


def typed_node(
    name: str, *, kind: str = "m", zone: str = "a", kubelet: str = "v1.36.4"
) -> NodeBuilder:
    """A node as clouds make them."""
    made = make_node(name).zone(zone).label("node.kubernetes.io/instance-type", kind).created(OLD)
    made.obj().status.node_info = NodeSystemInfo(kubelet_version=kubelet)
    return made


def healthy() -> list[KubeObject]:
    """Three nodes, a driver, a pod with a volume, a budget and a queue, all as they should be."""
    objects: list[KubeObject] = []
    for number in range(3):
        objects.append(typed_node(f"n{number}").obj())
        objects.append(make_csinode(f"n{number}").driver(DISK, 2, ZONE).obj())
    volume = make_pv("pv").csi(DISK, "h").bound_to("data").storage_class("fast")
    return [
        *objects,
        make_csidriver(DISK).obj(),
        make_storage_class("fast", DISK).waits().topology(ZONE, "a", "b").obj(),
        volume.node_affinity(node_term(ZONE, "In", "a")).obj(),
        make_pvc("data").volume("pv").storage_class("fast").obj(),
        make_attachment("at", DISK, "n0", "pv").attached().created(OLD).obj(),
        make_pod("db").claim("data").cpu("1").node("n0").created(OLD).obj(),
        make_pdb("db", None).obj(),
        make_queue("q").capability(cpu="10").obj(),
        make_pod_group("g").obj(),
    ]


def without(objects: Iterable[KubeObject], *names: str) -> list[KubeObject]:
    """All objects but those of these kinds, or `Kind/name`."""
    return [one for one in objects if not {one.kind, f"{one.kind}/{one.name}"} & {*names}]


def look(objects: Sequence[KubeObject], **more: object) -> tuple[Finding, ...]:
    """What is found."""
    return check(CheckedCluster(objects, NOW, **more)).findings  # type: ignore[arg-type]


def codes(objects: Sequence[KubeObject], **more: object) -> list[str]:
    """The codes of what is found."""
    return [one.kind.code for one in look(objects, **more)]
