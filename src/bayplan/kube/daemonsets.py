"""The pods of DaemonSets: which nodes get one, and its spec.

The DaemonSet controller creates the pods and leaves them to the scheduler, with a node affinity to
the name of their node. That affinity replaces the required one of the template, so whether a node
gets a pod is decided before, by `should_run_on`. Requests, ports and volumes are for the scheduler.
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


def daemon_tolerations(given: Iterable[Toleration], *, host_network: bool) -> list[Toleration]:
    """Return a template's tolerations with those that the DaemonSet controller adds.

    One that differs only in its seconds is replaced: these taints never evict a daemon pod.
    """
    added = (*_TOLERATED, _ON_HOST_NETWORK) if host_network else _TOLERATED
    result = list(given)
    for toleration in added:
        same = next((at for at, held in enumerate(result) if _is_same(held, toleration)), None)
        if same is None:
            result.append(toleration)
        else:
            result[same] = toleration
    return result


def should_run_on(daemon_set: DaemonSet, node: Node) -> bool:
    """Return whether a node gets a pod of the set: by name, labels, affinity and taints."""
    spec = daemon_set.spec.template.spec
    if spec.node_name and spec.node_name != node.name:
        return False
    held = daemon_tolerations(spec.tolerations, host_network=spec.host_network)
    return matches_node(spec, node) and find_untolerated(node.spec.taints, held) is None


def matches_node(spec: PodSpec, node: Node) -> bool:
    """Return whether a pod's node selector and required node affinity match the node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return True
    return compile_node_selector(affinity.required).matches(node)


def daemon_pod(daemon_set: DaemonSet, node: str) -> Pod:
    """Return the pod that the set creates for a node, not yet bound to it."""
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
        template.spec, tolerations=held, affinity=_with_node_name(template.spec.affinity, node)
    )
    return Pod(api_version="v1", kind="Pod", metadata=meta, spec=spec)


def _with_node_name(affinity: Affinity | None, node: str) -> Affinity:
    by_name = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
    term = NodeSelectorTerm(match_fields=[by_name])
    given = affinity or Affinity()
    by_node_name = msgspec.structs.replace(
        given.node_affinity or NodeAffinity(), required=NodeSelector(node_selector_terms=[term])
    )
    return msgspec.structs.replace(given, node_affinity=by_node_name)


def _owner(daemon_set: DaemonSet) -> OwnerReference:
    return OwnerReference(
        api_version="apps/v1",
        kind="DaemonSet",
        name=daemon_set.name,
        uid=daemon_set.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def _is_same(one: Toleration, other: Toleration) -> bool:
    return (one.key, one.effect, one.operator, one.value) == (
        other.key,
        other.effect,
        other.operator,
        other.value,
    )


def belongs_to_node(pod: Pod) -> bool:
    """Return whether an active pod is a DaemonSet pod or a static pod of its node."""
    owner = pod.metadata.controller
    is_owned = owner is not None and owner.kind in ("DaemonSet", "Node")
    return (is_owned or _MIRROR in pod.metadata.annotations) and not pod.is_terminal
