"""Comparing what Bayplan would buy with what Cluster Autoscaler's estimator would.

Its answers are not the best there are, so a case holds where, for each group by itself, at least as
many pods are helped, and for the same number of pods no more nodes are bought. Every placement is
tried besides: with the gate on, and as far as limits of nodes that are there go with it off, it
obeys the volume limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from bayplan.fit import Profile, Snapshot
from bayplan.fit.batches import NodeTemplate, Option, add_node, group_pods, options
from bayplan.fit.batches.fill import place_on
from bayplan.kube.codec import decode_object
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode
from tests.oracle.corpus import EstimatedNodes, NodeGroup, ScaleUpCase

K = TypeVar("K")
MOST_NODES = 1000
"""What Cluster Autoscaler adds at most."""


def differences(case: ScaleUpCase) -> dict[str, list[str]]:
    """By gates, where a case does not hold."""
    found: dict[str, list[str]] = {}
    objects = [decode_object(obj) for obj in case.objects]
    waiting = [_decoded(Pod, one) for one in case.pending]
    templates = [_template(group) for group in case.groups]
    for expected in case.expect:
        gate = expected.gates.get("VolumeLimitScaling", False)
        where = f"{case.id} VolumeLimitScaling={gate}"
        snapshot = Snapshot(objects, profile=Profile.kubernetes(volume_limit_scaling=gate))
        groups = group_pods(snapshot, waiting)
        ours = options(snapshot, templates, groups, [MOST_NODES] * len(templates))
        found[where] = [
            problem
            for group, option in zip(case.groups, ours, strict=True)
            for problem in (
                *_worse(where, group, option, expected.fits_now, expected.groups.get(group.name)),
                *_unplaceable(where, group, option, snapshot),
            )
        ]
    return found


def _worse(
    where: str, group: NodeGroup, option: Option, fits_now: int, bought: EstimatedNodes | None
) -> list[str]:
    theirs = bought or EstimatedNodes(nodes=0, placed=0)
    pods, nodes = option.helped, option.estimate.nodes
    wanted = fits_now + theirs.placed
    if pods > wanted or (pods == wanted and nodes <= theirs.nodes):
        return []
    ours = f"{pods} pods with {nodes} nodes"
    return [f"{where} {group.name}: ours {ours}, theirs {wanted} with {theirs.nodes}"]


def _unplaceable(where: str, group: NodeGroup, option: Option, snapshot: Snapshot) -> list[str]:
    """The pods said to be helped that do not fit where they are said to."""
    problems = []
    with snapshot.fork():
        for pod, node in _placements(snapshot, option):
            if snapshot.refusal(pod, node) is not None:
                problems.append(f"{where} {group.name}: {pod.key} does not fit {node}")
            place_on(snapshot, pod, node)
    return problems


def _placements(snapshot: Snapshot, option: Option) -> Iterator[tuple[Pod, str]]:
    """The placements of an option; new nodes appear when they are needed."""
    yield from option.placed
    nodes = 0
    for number, pod in option.estimate.placements():
        if number == nodes:
            add_node(snapshot, option.estimate.template, f"new-{number}")
            nodes += 1
        yield pod, f"new-{number}"


def _template(group: NodeGroup) -> NodeTemplate:
    written = group.template
    csinode = written.get("csinode")
    return NodeTemplate(
        node=_decoded(Node, written["node"]),
        csinode=_decoded(CSINode, csinode) if csinode else None,
        daemons=tuple(_decoded(Pod, pod) for pod in written.get("pods") or ()),
    )


def _decoded(kind: type[K], written: dict[str, Any]) -> K:
    found = decode_object(written)
    assert isinstance(found, kind)
    return found
