"""Node groups whose templates promise what their nodes do not have, and groups out of bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.templates import group_of, template_from
from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.finding import CheckKind, Example, Finding, Severity, found, plural, shortened
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
from bayplan.nodegroups import NotOfferedError, TemplateNodeInfo
from bayplan.nodegroups.templates import csi_limits

LIES = CheckKind(
    "TemplateLies",
    Severity.WARNING,
    "a node group's template promises what nodes of the group do not have",
    "The autoscaler buys nodes for pods that then do not fit them, or does not buy nodes that"
    " would do.",
    "Correct the group's template after a node of it: kubectl get node NODE -o yaml",
    (Node,),
)
SMALL = CheckKind(
    "GroupBelowMinimum",
    Severity.WARNING,
    "a node group has fewer nodes than its minimum",
    "Nodes failed to come, or the group's nodeSelector does not match them.",
    "Look at the group's instances in the cloud, and at the labels of its nodes.",
    (Node,),
)
FULL = CheckKind(
    "GroupAtMaximum",
    Severity.WARNING,
    "a node group has as many nodes as it may have, and pods wait that would fit another",
    "No autoscaler buys the node that would do; the pods wait until others end.",
    "Raise the group's maximum. bayplan plan --groups FILE shows what would be bought then.",
    (Node, Pod),
)
UNREAD = CheckKind(
    "GroupUnreadable",
    Severity.ERROR,
    "a NodeGroup says something that makes no sense, such as a minimum above its maximum",
    "What cannot be read does not count; with a template that cannot be read, nothing is bought.",
    "kubectl edit nodegroup NAME",
    (NodeGroup,),
)
KINDS = (LIES, SMALL, FULL, UNREAD)


BUYABLE = frozenset(
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
"""What another node could be the answer to."""


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """Each group that says which nodes are its own, beside those nodes."""
    csinodes = {one.name: one for one in subject.all(CSINode)}
    for said in subject.declared:
        yield from _unread(said)
        if said.node_selector:
            members = _members(said, subject)
            yield from _bounds(said, members)
            yield from _full(said, members, subject)
            yield from _template(said, members, csinodes, subject)


def _unread(said: Declaration) -> Iterator[Finding]:
    if said.about is not None and said.problems:
        name = said.about.name
        text = f"NodeGroup {name}: {plural(len(said.problems), 'field')} that cannot be used"
        examples = [Example(name, shortened(str(one))) for one in said.problems]
        advice = f"kubectl edit nodegroup {name}"
        yield found(UNREAD, "NodeGroup", examples, text, about=name, advice=advice, count=1)


def _members(said: Declaration, subject: CheckedCluster) -> list[Node]:
    selector = selector_from_labels(said.node_selector)
    return [node for node in subject.nodes.values() if selector.matches(node.metadata.labels)]


def _bounds(said: Declaration, members: Sequence[Node]) -> Iterator[Finding]:
    group, size = group_of(said), len(members)
    if size < group.min_size:
        text = f"group {group.id} has {size} of at least {plural(group.min_size, 'node')}"
        yield found(SMALL, "NodeGroup", [Example(group.id)], text, about=group.id)


def _full(said: Declaration, members: Sequence[Node], subject: CheckedCluster) -> Iterator[Finding]:
    if said.max_size is None or len(members) < said.max_size:
        return
    waiting = list(_would_fit(said, subject))
    if waiting:
        most = plural(said.max_size, "node")
        text = f"group {said.group} is at its maximum of {most}, and {plural(len(waiting), 'pod')}"
        text += " would fit another"
        yield found(FULL, "Pod", map(Example, waiting), text, about=said.group)


def _would_fit(said: Declaration, subject: CheckedCluster) -> Iterator[str]:
    """The pods that fit nowhere, and would fit a node of a group."""
    try:
        promised = template_from(said)
    except NotOfferedError:
        return
    template, name = batches.Template(promised.node, promised.csi_node), f"next of {said.group}"
    waiting = subject.waiting  # as things are without that node
    with subject.snapshot.fork():
        batches.add_node(subject.snapshot, template, name)
        for one in waiting:
            pod = subject.pods[one.pods[0]]
            if one.waiting.cause in BUYABLE and not subject.snapshot.refusal(pod, name):
                yield from (key for key in one.pods if subject.tells_of(key))


def _template(
    said: Declaration,
    members: Sequence[Node],
    csinodes: dict[str, CSINode],
    subject: CheckedCluster,
) -> Iterator[Finding]:
    try:
        template = template_from(said)
    except NotOfferedError:
        return
    settled = [one for one in members if not subject.is_young(one.metadata.creation_timestamp)]
    told: Counter[str] = Counter()
    examples = []
    for node in settled:
        differences = list(_differences(template, node, csinodes.get(node.name)))
        told.update(one.partition(":")[0] for one in differences)
        if differences:
            examples.append(Example(node.name, "; ".join(differences)))
    if examples:
        what = ", ".join(name for name, _ in told.most_common(4))
        nodes = f"{len(examples):,} of {plural(len(settled), 'node')}"
        text = f"the template of group {said.group} is unlike {nodes}: {what}"
        yield found(LIES, "Node", examples, text, about=said.group)


def _differences(template: TemplateNodeInfo, node: Node, csinode: CSINode | None) -> Iterator[str]:
    """What is promised and not there, and what keeps pods away that nobody told of."""
    yield from _amounts(template.node, node)
    labels = node.metadata.labels
    for key, value in sorted(template.node.metadata.labels.items()):
        if not key.startswith("kubernetes.io/hostname") and labels.get(key) != value:
            yield f"label {key}: promised {value}, is {labels.get(key, 'not there')}"
    hidden = _taints(node) - _taints(template.node)
    yield from (f"taint {one[0]}: not promised" for one in sorted(hidden))
    if template.csi_node is not None and csinode is not None:
        yield from _limits(template.csi_node, csinode)


def _amounts(promised: Node, node: Node) -> Iterator[str]:
    """Whatever a node has less of than was promised."""
    for name, written in sorted(promised.status.allocatable.items()):
        real = node.status.allocatable.get(name, "0")
        if not is_attach_limit(name) and _more(written, real):
            yield f"{name}: promised {written}, has {real}"


def _more(one: Quantity, other: Quantity) -> bool:
    try:
        return quantity.parse(one) > quantity.parse(other)
    except quantity.QuantityError:
        return False


def _taints(node: Node) -> set[tuple[str, str]]:
    """The taints that keep pods away, but for those that come and go with a node's state."""
    return {
        (one.key, one.effect)
        for one in node.spec.taints
        if one.effect != "PreferNoSchedule" and not one.key.startswith("node.kubernetes.io/")
    }


def _limits(promised: CSINode, csinode: CSINode) -> Iterator[str]:
    real = csi_limits(csinode)
    for driver, count in sorted(csi_limits(promised).items()):
        if driver not in real:
            yield f"{driver}: promised, is not registered"
        elif count != real[driver]:
            yield f"{driver}: promised {_said(count)}, takes {_said(real[driver])}"


def _said(count: int | None) -> str:
    return "any number of volumes" if count is None else str(count)
