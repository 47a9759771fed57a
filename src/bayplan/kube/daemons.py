"""The pods of DaemonSets: which nodes get one, and what it is.

Kubernetes makes a DaemonSet's pods itself and leaves them to the scheduler, tied to their node by
an affinity to its name. That affinity takes the place of the template's own required one, so
whether a node gets a pod at all is settled before, by `runs_on`. What the pod needs beyond that
(its requests, ports and volumes) is for whoever decides what fits.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.kube.meta import ObjectMeta, OwnerReference
from bayplan.kube.nodes import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.kube.pods import Affinity, NodeAffinity, Pod, PodSpec, Toleration
from bayplan.kube.selectors import compile_node_selector
from bayplan.kube.tolerations import find_untolerated
from bayplan.kube.workloads import DaemonSet

_MIRROR = "kubernetes.io/config.mirror"
_PREFIX = "node.kubernetes.io/"
_TOLERATED = (
    Toleration(key=f"{_PREFIX}not-ready", operator="Exists", effect="NoExecute"),
    Toleration(key=f"{_PREFIX}unreachable", operator="Exists", effect="NoExecute"),
    Toleration(key=f"{_PREFIX}disk-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key=f"{_PREFIX}memory-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key=f"{_PREFIX}pid-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key=f"{_PREFIX}unschedulable", operator="Exists", effect="NoSchedule"),
)
_ON_HOST_NETWORK = Toleration(
    key=f"{_PREFIX}network-unavailable", operator="Exists", effect="NoSchedule"
)


def daemon_tolerations(held: Iterable[Toleration], *, host_network: bool) -> list[Toleration]:
    """A template's own tolerations with those that Kubernetes adds.

    One that is there already but for its seconds is replaced: a daemon is never evicted for them.
    """
    added = (*_TOLERATED, _ON_HOST_NETWORK) if host_network else _TOLERATED
    result = list(held)
    for toleration in added:
        alike = next((at for at, one in enumerate(result) if _alike(one, toleration)), None)
        if alike is None:
            result.append(toleration)
        else:
            result[alike] = toleration
    return result


def runs_on(daemon_set: DaemonSet, node: Node) -> bool:
    """Whether a node gets a pod of the set: by name, labels, affinity and taints."""
    spec = daemon_set.spec.template.spec
    if spec.node_name and spec.node_name != node.name:
        return False
    held = daemon_tolerations(spec.tolerations, host_network=spec.host_network)
    return selects(spec, node) and find_untolerated(node.spec.taints, held) is None


def selects(spec: PodSpec, node: Node) -> bool:
    """Whether a pod's node selector and required node affinity take the node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return True
    return compile_node_selector(affinity.required).matches(node)


def daemon_pod(daemon_set: DaemonSet, node: str) -> Pod:
    """The pod that the set makes for a node; it is not yet bound to it."""
    template = daemon_set.spec.template
    meta = ObjectMeta(
        name=f"{daemon_set.name}-{node}",
        namespace=daemon_set.namespace,
        labels=dict(template.metadata.labels),
        annotations=dict(template.metadata.annotations),
        owner_references=[_owner(daemon_set)],
    )
    held = daemon_tolerations(template.spec.tolerations, host_network=template.spec.host_network)
    spec = msgspec.structs.replace(
        template.spec, tolerations=held, affinity=_tied_to(template.spec.affinity, node)
    )
    return Pod(api_version="v1", kind="Pod", metadata=meta, spec=spec)


def _tied_to(affinity: Affinity | None, node: str) -> Affinity:
    by_name = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
    term = NodeSelectorTerm(match_fields=[by_name])
    given = affinity or Affinity()
    tied = msgspec.structs.replace(
        given.node_affinity or NodeAffinity(), required=NodeSelector(node_selector_terms=[term])
    )
    return msgspec.structs.replace(given, node_affinity=tied)


def _owner(daemon_set: DaemonSet) -> OwnerReference:
    return OwnerReference(
        api_version="apps/v1",
        kind="DaemonSet",
        name=daemon_set.name,
        uid=daemon_set.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def _alike(one: Toleration, other: Toleration) -> bool:
    return (one.key, one.effect, one.operator, one.value) == (
        other.key,
        other.effect,
        other.operator,
        other.value,
    )


def belongs_to_node(pod: Pod) -> bool:
    """Whether a pod that runs goes with its node: it is of a DaemonSet, or the node's own."""
    owner = pod.metadata.controller
    is_owned = owner is not None and owner.kind in ("DaemonSet", "Node")
    return (is_owned or _MIRROR in pod.metadata.annotations) and not pod.is_terminal
