"""Node groups whose templates differ from their nodes, and groups below or at their bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.templates import group_of, template_from
from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import (
    CheckKind,
    Example,
    Finding,
    Severity,
    make_finding,
    plural,
    shortened,
)
from bayplan.fit import batches
from bayplan.fit.plugins.plugin import Cause
from bayplan.kube import quantity
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.registrations import NodeGroup
from bayplan.kube.resources import is_attach_limit
from bayplan.kube.selectors import selector_from_labels
from bayplan.kube.storage import CSINode
from bayplan.nodegroups import TemplateNodeInfo, UnimplementedError
from bayplan.nodegroups.templates import csi_limits

MISMATCH = CheckKind(
    "TemplateMismatch",
    Severity.WARNING,
    "a node group's template differs from the group's nodes",
    "The autoscaler adds nodes on which the pods then do not fit, or does not add nodes on which"
    " they would.",
    "Correct the group's template to match its nodes: kubectl get node NODE -o yaml",
    (Node,),
)
SMALL = CheckKind(
    "GroupBelowMinimum",
    Severity.WARNING,
    "a node group has fewer nodes than its minimum",
    "Nodes failed to start, or the group's nodeSelector does not match them.",
    "Check the group's instances in the cloud, and the labels of its nodes.",
    (Node,),
)
FULL = CheckKind(
    "GroupAtMaximum",
    Severity.WARNING,
    "a node group is at its maximum size, and pending pods would fit on another node of it",
    "The group cannot be scaled up; the pods stay pending until other pods end.",
    "Raise the group's maximum size. bayplan plan --groups FILE shows the scale-up.",
    (Node, Pod),
)
INVALID = CheckKind(
    "GroupUnreadable",
    Severity.ERROR,
    "a NodeGroup has invalid fields, such as a minimum above its maximum",
    "Invalid fields are ignored; with an invalid template the group is not scaled up.",
    "kubectl edit nodegroup NAME",
    (NodeGroup,),
)
KINDS = (MISMATCH, SMALL, FULL, INVALID)


SOLVED_BY_NODE = frozenset(
    {
        Cause.RESOURCES,
        Cause.NODES,
        Cause.VOLUMES,
        Cause.AFFINITY,
        Cause.SPREAD,
        Cause.TAINTS,
        Cause.PORTS,
        Cause.OTHER,
    }
)
"""The causes that another node may remove."""


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about declared groups, compared with the nodes that they select."""
    csinodes = {one.name: one for one in cluster.all(CSINode)}
    for declared in cluster.declared:
        yield from _invalid(declared)
        if declared.node_selector:
            members = _members(declared, cluster)
            yield from _bounds(declared, members)
            yield from _full(declared, members, cluster)
            yield from _template(declared, members, csinodes, cluster)


def _invalid(declared: Declaration) -> Iterator[Finding]:
    if declared.about is not None and declared.problems:
        name = declared.about.name
        text = f"NodeGroup {name} has {plural(len(declared.problems), 'invalid field')}"
        examples = [Example(name, shortened(str(one))) for one in declared.problems]
        advice = f"kubectl edit nodegroup {name}"
        yield make_finding(INVALID, "NodeGroup", examples, text, about=name, advice=advice, count=1)


def _members(declared: Declaration, cluster: CheckedCluster) -> list[Node]:
    selector = selector_from_labels(declared.node_selector)
    return [node for node in cluster.nodes.values() if selector.matches(node.metadata.labels)]


def _bounds(declared: Declaration, members: Sequence[Node]) -> Iterator[Finding]:
    group, size = group_of(declared), len(members)
    if size < group.min_size:
        text = f"group {group.id} has {plural(size, 'node')}, below its minimum of {group.min_size}"
        yield make_finding(SMALL, "NodeGroup", [Example(group.id)], text, about=group.id)


def _full(
    declared: Declaration, members: Sequence[Node], cluster: CheckedCluster
) -> Iterator[Finding]:
    if declared.max_size is None or len(members) < declared.max_size:
        return
    waiting = list(_would_fit(declared, cluster))
    if waiting:
        most = plural(declared.max_size, "node")
        text = f"group {declared.group} is at its maximum of {most}, and"
        text += f" {plural(len(waiting), 'pending pod')} would fit on another node of it"
        yield make_finding(FULL, "Pod", map(Example, waiting), text, about=declared.group)


def _would_fit(declared: Declaration, cluster: CheckedCluster) -> Iterator[str]:
    """Yield the unschedulable pods that would fit on a new node of a group."""
    try:
        promised = template_from(declared)
    except UnimplementedError:
        return
    template, name = (
        batches.NodeTemplate(promised.node, promised.csi_node),
        f"next of {declared.group}",
    )
    waiting = cluster.waiting  # computed before the node is added
    with cluster.snapshot.fork():
        batches.add_node(cluster.snapshot, template, name)
        for one in waiting:
            pod = cluster.pods[one.pods[0]]
            if one.reason.cause in SOLVED_BY_NODE and not cluster.snapshot.refusal(pod, name):
                yield from (key for key in one.pods if cluster.reports(key))


def _template(
    declared: Declaration,
    members: Sequence[Node],
    csinodes: dict[str, CSINode],
    cluster: CheckedCluster,
) -> Iterator[Finding]:
    try:
        template = template_from(declared)
    except UnimplementedError:
        return
    settled = [one for one in members if not cluster.is_young(one.metadata.creation_timestamp)]
    fields: Counter[str] = Counter()
    examples = []
    for node in settled:
        differences = list(_differences(template, node, csinodes.get(node.name)))
        fields.update(one.partition(":")[0] for one in differences)
        if differences:
            examples.append(Example(node.name, "; ".join(differences)))
    if examples:
        what = ", ".join(name for name, _ in fields.most_common(4))
        nodes = f"{len(examples):,} of {plural(len(settled), 'node')}"
        text = f"the template of group {declared.group} differs from {nodes}: {what}"
        yield make_finding(MISMATCH, "Node", examples, text, about=declared.group)


def _differences(template: TemplateNodeInfo, node: Node, csinode: CSINode | None) -> Iterator[str]:
    """Yield what the template has and the node does not, and taints that it lacks."""
    yield from _amounts(template.node, node)
    labels = node.metadata.labels
    for key, value in sorted(template.node.metadata.labels.items()):
        if not key.startswith("kubernetes.io/hostname") and labels.get(key) != value:
            yield f"label {key}: template {value}, node {labels.get(key, 'has none')}"
    extra = _taints(node) - _taints(template.node)
    yield from (f"taint {one[0]}: not in the template" for one in sorted(extra))
    if template.csi_node is not None and csinode is not None:
        yield from _limits(template.csi_node, csinode)


def _amounts(template: Node, node: Node) -> Iterator[str]:
    """Yield the resources of which the node has less than the template."""
    for name, written in sorted(template.status.allocatable.items()):
        real = node.status.allocatable.get(name, "0")
        if not is_attach_limit(name) and _more(written, real):
            yield f"{name}: template {written}, node {real}"


def _more(one: Quantity, other: Quantity) -> bool:
    try:
        return quantity.parse(one) > quantity.parse(other)
    except quantity.QuantityError:
        return False


def _taints(node: Node) -> set[tuple[str, str]]:
    """Return the taints that repel pods, without those that follow from node conditions."""
    return {
        (one.key, one.effect)
        for one in node.spec.taints
        if one.effect != "PreferNoSchedule" and not one.key.startswith("node.kubernetes.io/")
    }


def _limits(template: CSINode, csinode: CSINode) -> Iterator[str]:
    real = csi_limits(csinode)
    for driver, count in sorted(csi_limits(template).items()):
        if driver not in real:
            yield f"{driver}: in the template, not registered on the node"
        elif count != real[driver]:
            yield f"{driver}: template {_limit(count)}, node {_limit(real[driver])}"


def _limit(count: int | None) -> str:
    return "unlimited" if count is None else str(count)
