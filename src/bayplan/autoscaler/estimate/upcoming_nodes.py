"""Upcoming nodes, added to a fork as if they were ready, with the pods that they are for.

An unregistered instance is added as a node of its group's template. A registered node that is not
ready is completed from the template: without startup taints, with the drivers that will register,
and with the DaemonSet pods that it will run. What it already reports is kept, and so are its pods.

The pods that new nodes are for are remembered until the nodes are ready. Until then pods are tried
first on the nodes that the plan had them on, in its order. Otherwise another order of binpacking
might leave one of these pods over, and trigger another scale-up for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from msgspec.structs import replace as changed

from bayplan.autoscaler.clusterstate.registry import UpcomingNodes
from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.options import NewNodes
from bayplan.fit import Snapshot
from bayplan.fit.batches import NodeTemplate, PodEquivalenceGroup, add_node, fill, new_names
from bayplan.fit.batches.fill import FillResult, PodPlacement, place_on
from bayplan.fit.batches.template import GATE
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import value
from bayplan.kube.storage import CSINode


def apply_new_nodes(snapshot: Snapshot, new_nodes: Sequence[NewNodes]) -> None:
    """Add new nodes and assume their pods, and those expected to fit existing nodes."""
    for pod, node in _placements(snapshot, new_nodes):
        place_on(snapshot, pod, node)


def is_feasible(snapshot: Snapshot, new_nodes: Sequence[NewNodes]) -> bool:
    """Whether every pod fits the node that it is planned for."""
    with snapshot.fork():
        for pod, node in _placements(snapshot, new_nodes):
            if snapshot.refusal(pod, node) is not None:
                return False
            place_on(snapshot, pod, node)
    return True


def _placements(snapshot: Snapshot, new_nodes: Sequence[NewNodes]) -> Iterator[PodPlacement]:
    """Yield pods and their nodes in the order of planning; nodes are added when first used."""
    for new in new_nodes:
        yield from new.placed
        template = new.view.template
        if template is None:
            continue
        names = islice(new_names(snapshot, template), new.nodes)
        there: list[str] = []
        for number, pod in new.in_order():
            while len(there) <= number:
                there.append(next(names))
                add_node(snapshot, template, there[-1])
            yield pod, there[number]
        for name in names:
            add_node(snapshot, template, name)


def add_upcoming(cluster_view: ClusterView) -> dict[str, list[str]]:
    """Add all upcoming nodes to the forked snapshot; return their names by group."""
    found: dict[str, list[str]] = {}
    for group, coming in sorted(cluster_view.upcoming.items()):
        template = cluster_view.groups[group].template
        if template is not None:
            found[group] = _add(cluster_view.snapshot, template, coming)
    return found


def _add(snapshot: Snapshot, template: NodeTemplate, coming: UpcomingNodes) -> list[str]:
    names = [name for name in coming.nodes if _complete(snapshot, template, name)]
    fresh = new_names(snapshot, template)
    for _ in range(coming.instances):
        names.append(next(fresh))
        add_node(snapshot, template, names[-1])
    return names


def _complete(snapshot: Snapshot, template: NodeTemplate, name: str) -> bool:
    """Complete a registered node from the template; False if it no longer exists."""
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
    """Return the template's node with what the node itself already reports."""
    spec = changed(promised.spec, unschedulable=node.spec.unschedulable)
    if node.spec.unschedulable:
        spec = changed(spec, taints=node.spec.taints)
    labels = promised.metadata.labels | node.metadata.labels
    reported = {name: amount for name, amount in node.status.allocatable.items() if value(amount)}
    status = changed(node.status, allocatable=promised.status.allocatable | reported)
    return changed(node, metadata=changed(node.metadata, labels=labels), spec=spec, status=status)


def _reported(there: CSINode | None, promised: CSINode) -> CSINode:
    """Return the template's CSINode with the drivers that have already registered."""
    if there is None:
        return promised
    drivers = {one.name: one for one in promised.spec.drivers}
    for one in there.spec.drivers:
        if one.allocatable is not None or one.name not in drivers:
            drivers[one.name] = one
    return changed(there, spec=changed(there.spec, drivers=list(drivers.values())))


def _owner(pod: Pod) -> tuple[str, str, str]:
    owner = pod.metadata.controller
    return (owner.kind, pod.namespace, owner.name) if owner else ("", pod.namespace, pod.name)


def count_upcoming(upcoming: Mapping[str, UpcomingNodes]) -> dict[str, int]:
    """Return the number of upcoming nodes by group."""
    return {group: len(coming) for group, coming in upcoming.items() if len(coming)}


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """A pod, and the node that it is planned for."""

    uid: str
    node: str = ""
    """The node's name, if it existed."""
    group: str = ""
    number: int = 0
    """Otherwise the node's group, and its number among the new nodes of the group."""


@dataclass(frozen=True, slots=True)
class PlannedPods:
    """Planned pods in the order of the plan."""

    steps: tuple[PlannedPod, ...] = ()

    def still_pending(
        self, upcoming: Mapping[str, int], waiting: Mapping[str, object]
    ) -> PlannedPods:
        """Return the pods that are still pending, with upcoming nodes numbered again."""
        if not upcoming:
            return NO_PLANNED_PODS
        numbers: dict[tuple[str, int], int] = {}
        counts: dict[str, int] = {}
        steps = []
        for step in (one for one in self.steps if one.uid in waiting):
            if step.group:
                key = (step.group, step.number)
                if key not in numbers:
                    numbers[key] = counts.get(step.group, 0)
                    counts[step.group] = numbers[key] + 1
                steps.append(replace(step, number=numbers[key]))
            else:
                steps.append(step)
        return PlannedPods(tuple(steps))

    def with_new_nodes(
        self, upcoming: Mapping[str, int], new_nodes: Iterable[NewNodes]
    ) -> PlannedPods:
        """Return these with the pods of new nodes; a pod that is planned again is moved."""
        counts = dict(upcoming)
        steps: list[PlannedPod] = []
        for one in new_nodes:
            first, name = counts.get(one.view.id, 0), one.view.id
            counts[name] = first + one.nodes
            steps += [PlannedPod(pod.metadata.uid, node) for pod, node in one.placed]
            steps += [PlannedPod(p.metadata.uid, "", name, first + n) for n, p in one.in_order()]
        planned = {step.uid for step in steps}
        before = (step for step in self.steps if step.uid not in planned)
        return PlannedPods((*before, *steps))


NO_PLANNED_PODS = PlannedPods()


def place_selected(
    snapshot: Snapshot, groups: Sequence[PodEquivalenceGroup]
) -> tuple[list[PodPlacement], list[PodEquivalenceGroup]]:
    """Place pods on the node that was selected for their claims: their scheduler has decided, and
    binds them once their volumes exist. Return each with its node, and the groups without them.
    They are left assumed.
    """
    placed: list[PodPlacement] = []
    left: list[PodEquivalenceGroup] = []
    for group in groups:
        node = _selected_node(group)
        is_there = node in snapshot.cluster.slots.by_name
        filled = fill(snapshot, group, among=[node]) if is_there else FillResult((), group)
        placed += filled.placed
        left.append(filled.left)
    return placed, left


def _selected_node(group: PodEquivalenceGroup) -> str:
    """Return the node that was selected for claims of the group's pods; empty if none was."""
    claims = group.requirements.first_consumer if group.requirements is not None else ()
    return next((one.selected_node for one in claims if one.selected_node), "")


def place_planned(
    snapshot: Snapshot,
    groups: Sequence[PodEquivalenceGroup],
    upcoming: Mapping[str, Sequence[str]],
    planned: PlannedPods,
) -> tuple[list[PodPlacement], list[PodEquivalenceGroup]]:
    """Place pods on their planned nodes, as far as they still fit. Return each with its node, and
    the groups without them. They are left assumed.
    """
    where = {
        pod.metadata.uid: (number, pod) for number, group in enumerate(groups) for pod in group.pods
    }
    known = [step for step in planned.steps if step.uid in where]
    meant = [(_node(snapshot, upcoming, step), *where[step.uid]) for step in known]
    placed: list[PodPlacement] = []
    for (node, number), steps in groupby(meant, key=lambda one: one[:2]):
        same_class = groups[number].of([pod for _, _, pod in steps])
        placed += fill(snapshot, same_class, among=[node]).placed if node else ()
    gone = {pod.metadata.uid for pod, _ in placed}
    return placed, list(_without(groups, gone))


def _node(snapshot: Snapshot, upcoming: Mapping[str, Sequence[str]], step: PlannedPod) -> str:
    """Return the name of a planned pod's node; empty if it no longer exists."""
    if not step.group:
        return step.node if step.node in snapshot.cluster.slots.by_name else ""
    names = upcoming.get(step.group, ())
    return names[step.number] if step.number < len(names) else ""


def _without(
    groups: Iterable[PodEquivalenceGroup], gone: set[str]
) -> Iterator[PodEquivalenceGroup]:
    for group in groups:
        yield group.of([pod for pod in group.pods if pod.metadata.uid not in gone])
