"""Pods that are meant for one node by its name, as those of a DaemonSet are.

All pods of a DaemonSet differ in that name alone. Without it they are one shape, whose standing
answers say of the node whether it takes the pod: which nodes others may go to, and how they score,
is of no concern. It is, though, where topology spreading counts only nodes that the pod's own
affinity allows, so pods with such constraints keep their names.
"""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.kube.nodes import NodeSelector, NodeSelectorTerm
from bayplan.kube.pods import Pod

_NAME_FIELD = "metadata.name"


def pinned_node(pod: Pod) -> str:
    """The one node that a pod's required affinity names; empty if there is none."""
    affinity = pod.spec.affinity
    if (
        affinity is None
        or affinity.node_affinity is None
        or affinity.node_affinity.required is None
    ):
        return ""
    if pod.spec.topology_spread_constraints:
        return ""
    names = {_named(term) for term in affinity.node_affinity.required.node_selector_terms}
    return names.pop() if len(names) == 1 else ""


def _named(term: NodeSelectorTerm) -> str:
    fields = term.match_fields
    if len(fields) != 1:
        return ""
    field = fields[0]
    named = field.key == _NAME_FIELD and field.operator == "In" and len(field.values) == 1
    return field.values[0] if named else ""


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    node_affinity = affinity.node_affinity if affinity is not None else None
    return node_affinity.required if node_affinity is not None else None


def without_pin(pod: Pod) -> Pod:
    """The pod as it would be if its affinity did not name its node."""
    required, affinity = _required(pod), pod.spec.affinity
    if required is None or affinity is None or affinity.node_affinity is None:
        return pod
    terms = required.node_selector_terms
    left = [NodeSelectorTerm(match_expressions=term.match_expressions) for term in terms]
    # A term that asked for the name alone now asks for nothing, and one such is enough.
    asks = all(term.match_expressions for term in left)
    rest = replace(
        affinity.node_affinity, required=NodeSelector(node_selector_terms=left) if asks else None
    )
    spec = replace(pod.spec, affinity=replace(affinity, node_affinity=rest))
    return replace(pod, spec=spec)
