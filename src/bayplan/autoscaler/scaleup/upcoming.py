"""Nodes that are on their way, put into a fork as if they were there.

An instance that is no node yet is a node of its group's template. A node that is registered and not
ready is completed to what the template promises: without the taints of its beginning, with the
drivers that it will report, and with the daemons that it will run. What it does report counts as
reported, and pods that are on it stay there.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from bayplan.autoscaler.world import Upcoming, World
from bayplan.fit import Snapshot
from bayplan.fit.batches import Template, add_node, new_names
from bayplan.fit.batches.template import GATE
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import value
from bayplan.kube.storage import CSINode


def add_upcoming(world: World) -> dict[str, list[str]]:
    """Put all nodes that are on their way into the snapshot, which is forked; their names by
    group.
    """
    found: dict[str, list[str]] = {}
    for group, coming in sorted(world.upcoming.items()):
        template = world.groups[group].template
        if template is not None:
            found[group] = _add(world.snapshot, template, coming)
    return found


def _add(snapshot: Snapshot, template: Template, coming: Upcoming) -> list[str]:
    names = [name for name in coming.nodes if _complete(snapshot, template, name)]
    fresh = new_names(snapshot, template)
    for _ in range(coming.instances):
        names.append(next(fresh))
        add_node(snapshot, template, names[-1])
    return names


def _complete(snapshot: Snapshot, template: Template, name: str) -> bool:
    """Make a node that is there what it will be; False if it has gone."""
    node = snapshot.cluster.node_named(name)
    if node is None:
        return False
    gate = snapshot.profile.gates.enabled(GATE)
    owners = {_owner(pod) for pod in snapshot.pods_on(name)}
    for obj in template.objects(name, with_csinode=gate):
        if isinstance(obj, Node):
            snapshot.put(_merged(node, obj))
        elif isinstance(obj, CSINode):
            snapshot.put(_reported(snapshot.cluster.csinodes.get(name), obj))
        elif not isinstance(obj, Pod) or _owner(obj) not in owners:
            snapshot.put(obj)
    return True


def _merged(node: Node, promised: Node) -> Node:
    """The node with what was promised, as far as it does not say otherwise."""
    spec = replace(promised.spec, unschedulable=node.spec.unschedulable)
    if node.spec.unschedulable:
        spec = replace(spec, taints=node.spec.taints)
    labels = promised.metadata.labels | node.metadata.labels
    said = {name: amount for name, amount in node.status.allocatable.items() if value(amount)}
    status = replace(node.status, allocatable=promised.status.allocatable | said)
    return replace(node, metadata=replace(node.metadata, labels=labels), spec=spec, status=status)


def _reported(there: CSINode | None, promised: CSINode) -> CSINode:
    """The CSINode with the drivers that were promised, and those that have reported as they did."""
    if there is None:
        return promised
    drivers = {one.name: one for one in promised.spec.drivers}
    for one in there.spec.drivers:
        if one.allocatable is not None or one.name not in drivers:
            drivers[one.name] = one
    return replace(there, spec=replace(there.spec, drivers=list(drivers.values())))


def _owner(pod: Pod) -> tuple[str, str, str]:
    owner = pod.metadata.controller
    return (owner.kind, pod.namespace, owner.name) if owner else ("", pod.namespace, pod.name)


def counted(upcoming: Mapping[str, Upcoming]) -> dict[str, int]:
    """How many nodes are on their way, by group."""
    return {group: len(coming) for group, coming in upcoming.items() if len(coming)}
