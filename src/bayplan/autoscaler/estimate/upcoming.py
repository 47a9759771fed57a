"""Upcoming nodes, put into a fork as if they were there, with the pods that they were bought for.

An instance that is no node yet is a node of its group's template. A node that is registered and not
ready is completed to what the template promises: without the taints of its beginning, with the
drivers that it will report, and with the daemons that it will run. What it does report counts as
reported, and pods that are on it stay there.

What new nodes were bought for, remembered until they are there.

While nodes are on their way, pods are tried first where the plan had them, in its order: on the
nodes that were there, and on those that were bought for them. Otherwise another way of filling the
same nodes might leave one of these pods over, and a node would be bought for it that nobody needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from msgspec.structs import replace as changed

from bayplan.autoscaler.clusterstate.registry import Upcoming
from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.options import NewNodes
from bayplan.fit import Snapshot
from bayplan.fit.batches import Group, Template, add_node, fill, new_names
from bayplan.fit.batches.fill import Filled, Placed
from bayplan.fit.batches.placing import place_on
from bayplan.fit.batches.template import GATE
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import value
from bayplan.kube.storage import CSINode


def put_in_place(snapshot: Snapshot, purchases: Sequence[NewNodes]) -> None:
    """Add the nodes and assume their pods, and those that are counted on to fit nodes which are
    there.
    """
    for pod, node in _placements(snapshot, purchases):
        place_on(snapshot, pod, node)


def holds(snapshot: Snapshot, purchases: Sequence[NewNodes]) -> bool:
    """Whether every pod really fits the node that it is said to be helped by."""
    with snapshot.fork():
        for pod, node in _placements(snapshot, purchases):
            if snapshot.refusal(pod, node) is not None:
                return False
            place_on(snapshot, pod, node)
    return True


def _placements(snapshot: Snapshot, purchases: Sequence[NewNodes]) -> Iterator[Placed]:
    """Pods and their nodes; each new node is added when it is needed, and the spare ones last."""
    for purchase in purchases:
        yield from purchase.placed
    for purchase in purchases:
        template = purchase.view.template
        if template is None:
            continue
        names = islice(new_names(snapshot, template), purchase.nodes)
        there: list[str] = []
        for number, pod in purchase.in_order():
            while len(there) <= number:
                there.append(next(names))
                add_node(snapshot, template, there[-1])
            yield pod, there[number]
        for name in names:
            add_node(snapshot, template, name)


def add_upcoming(cluster_view: ClusterView) -> dict[str, list[str]]:
    """Put all nodes that are on their way into the snapshot, which is forked; their names by
    group.
    """
    found: dict[str, list[str]] = {}
    for group, coming in sorted(cluster_view.upcoming.items()):
        template = cluster_view.groups[group].template
        if template is not None:
            found[group] = _add(cluster_view.snapshot, template, coming)
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
    spec = changed(promised.spec, unschedulable=node.spec.unschedulable)
    if node.spec.unschedulable:
        spec = changed(spec, taints=node.spec.taints)
    labels = promised.metadata.labels | node.metadata.labels
    said = {name: amount for name, amount in node.status.allocatable.items() if value(amount)}
    status = changed(node.status, allocatable=promised.status.allocatable | said)
    return changed(node, metadata=changed(node.metadata, labels=labels), spec=spec, status=status)


def _reported(there: CSINode | None, promised: CSINode) -> CSINode:
    """The CSINode with the drivers that were promised, and those that have reported as they did."""
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


def counted(upcoming: Mapping[str, Upcoming]) -> dict[str, int]:
    """How many nodes are on their way, by group."""
    return {group: len(coming) for group, coming in upcoming.items() if len(coming)}


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """A pod, and the node that it was planned for."""

    uid: str
    node: str = ""
    """The node's name, if it was there."""
    group: str = ""
    number: int = 0
    """Else the group that it was bought of, and which of its new nodes it was."""


@dataclass(frozen=True, slots=True)
class PlannedPods:
    """Pods in the order in which they were planned."""

    steps: tuple[PlannedPod, ...] = ()

    def kept(self, upcoming: Mapping[str, int], waiting: Mapping[str, object]) -> PlannedPods:
        """What still matters: pods that wait, and nodes that are on their way, counted anew."""
        if not upcoming:
            return NOTHING
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

    def with_more(self, upcoming: Mapping[str, int], purchases: Iterable[NewNodes]) -> PlannedPods:
        """The same with what is bought now, after what was on its way before; a pod that is planned
        anew, since it no longer fits where it was meant to go, is meant to go there no more.
        """
        counts = dict(upcoming)
        steps: list[PlannedPod] = []
        for one in purchases:
            first, name = counts.get(one.view.id, 0), one.view.id
            counts[name] = first + one.nodes
            steps += [PlannedPod(pod.metadata.uid, node) for pod, node in one.placed]
            steps += [PlannedPod(p.metadata.uid, "", name, first + n) for n, p in one.in_order()]
        planned = {step.uid for step in steps}
        before = (step for step in self.steps if step.uid not in planned)
        return PlannedPods((*before, *steps))


NOTHING = PlannedPods()


def place_selected(snapshot: Snapshot, groups: Sequence[Group]) -> tuple[list[Placed], list[Group]]:
    """Place pods on the node that was selected for their claims: their scheduler has decided, and
    binds them once their volumes are there. Returns each with its node, and the groups without
    them. They are left assumed.
    """
    placed: list[Placed] = []
    left: list[Group] = []
    for group in groups:
        node = _selected_node(group)
        is_there = node in snapshot.cluster.slots.by_name
        filled = fill(snapshot, group, among=[node]) if is_there else Filled((), group)
        placed += filled.placed
        left.append(filled.left)
    return placed, left


def _selected_node(group: Group) -> str:
    """The node that was selected for claims of the group's pods; empty if there is none."""
    claims = group.requirements.first_consumer if group.requirements is not None else ()
    return next((one.selected_node for one in claims if one.selected_node), "")


def place_planned(
    snapshot: Snapshot,
    groups: Sequence[Group],
    upcoming: Mapping[str, Sequence[str]],
    remembered: PlannedPods,
) -> tuple[list[Placed], list[Group]]:
    """Place pods where they were planned, as far as they still fit there; returns each with its
    node, and the groups without them. They are left assumed.
    """
    where = {
        pod.metadata.uid: (number, pod) for number, group in enumerate(groups) for pod in group.pods
    }
    known = [step for step in remembered.steps if step.uid in where]
    meant = [(_node(snapshot, upcoming, step), *where[step.uid]) for step in known]
    placed: list[Placed] = []
    for (node, number), steps in groupby(meant, key=lambda one: one[:2]):
        alike = groups[number].of([pod for _, _, pod in steps])
        placed += fill(snapshot, alike, among=[node]).placed if node else ()
    gone = {pod.metadata.uid for pod, _ in placed}
    return placed, list(_without(groups, gone))


def _node(snapshot: Snapshot, upcoming: Mapping[str, Sequence[str]], step: PlannedPod) -> str:
    """The name of a step's node; empty if there is none any more."""
    if not step.group:
        return step.node if step.node in snapshot.cluster.slots.by_name else ""
    names = upcoming.get(step.group, ())
    return names[step.number] if step.number < len(names) else ""


def _without(groups: Iterable[Group], gone: set[str]) -> Iterator[Group]:
    for group in groups:
        yield group.of([pod for pod in group.pods if pod.metadata.uid not in gone])
