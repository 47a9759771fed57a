"""Balances new nodes between similar node groups, so that their sizes become close.

Groups are similar as in Cluster Autoscaler: the same resources, with memory, allocatable and free
resources within a few percent, and the same labels except names and zones. In addition they must
have the same CSI drivers with the same attach limits.

New nodes are distributed one by one, each with its pods to the smallest group, until a group has
its maximum size. A group takes part only if its nodes would help the same pods; volumes that are
bound to a zone are why they might not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace

from bayplan.autoscaler.estimate.options import NewNodes, NodeGroupOption
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit.batches import NodeTemplate
from bayplan.kube.labels import BETA_REGION, BETA_ZONE, HOSTNAME, REGION, ZONE
from bayplan.kube.meta import Quantity
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import milli_value
from bayplan.kube.requests import pod_requests
from bayplan.kube.resources import CPU, MEMORY, is_attach_limit
from bayplan.kube.storage import CSINode

IGNORED = frozenset(
    {
        HOSTNAME,
        ZONE,
        REGION,
        BETA_ZONE,
        BETA_REGION,
        "beta.kubernetes.io/fluentd-ds-ready",
        "kops.k8s.io/instancegroup",
        "alpha.eksctl.io/instance-id",
        "alpha.eksctl.io/nodegroup-name",
        "eks.amazonaws.com/nodegroup",
        "k8s.amazonaws.com/eniConfig",
        "lifecycle",
        "topology.ebs.csi.aws.com/zone",
        "topology.gke.io/zone",
        "topology.disk.csi.azure.com/zone",
        "cluster.x-k8s.io/deployment-name",
    }
)
"""Labels in which similar groups may differ."""
Amounts = Mapping[str, int]


def are_similar(one: NodeTemplate, other: NodeTemplate, options: AutoscalerOptions) -> bool:
    """Whether the templates are of similar node groups."""
    if options.balancing_label:
        mine, theirs = one.node.metadata.labels, other.node.metadata.labels
        return all(mine.get(key) == theirs.get(key) for key in options.balancing_label)
    return (
        _labels(one, options) == _labels(other, options)
        and _limits(one.csinode) == _limits(other.csinode)
        and _has_similar_capacity(one, other, options.memory_difference_ratio)
        and _is_close(
            _allocatable(one), _allocatable(other), options.max_allocatable_difference_ratio
        )
        and _is_close(_free(one), _free(other), options.max_free_difference_ratio)
    )


def _labels(template: NodeTemplate, options: AutoscalerOptions) -> dict[str, str]:
    ignored = IGNORED | template.own_labels | set(options.balancing_ignore_label)
    zones = _zone_keys(template.csinode)
    labels = template.node.metadata.labels.items()
    return {key: value for key, value in labels if key not in ignored and key not in zones}


def _zone_keys(csinode: CSINode | None) -> frozenset[str]:
    """Return the zone labels of CSI drivers."""
    drivers = csinode.spec.drivers if csinode is not None else ()
    return frozenset(key for driver in drivers for key in driver.topology_keys if "zone" in key)


def _limits(csinode: CSINode | None) -> dict[str, int | None]:
    drivers = csinode.spec.drivers if csinode is not None else ()
    return {
        driver.name: driver.allocatable.count if driver.allocatable is not None else None
        for driver in drivers
    }


def _has_similar_capacity(one: NodeTemplate, other: NodeTemplate, memory_ratio: float) -> bool:
    mine, theirs = _amounts(one.node.status.capacity), _amounts(other.node.status.capacity)
    memory = {MEMORY: mine.pop(MEMORY, 0)}, {MEMORY: theirs.pop(MEMORY, 0)}
    return mine == theirs and _is_close(*memory, memory_ratio)


def _allocatable(template: NodeTemplate) -> dict[str, int]:
    return _amounts(template.node.status.allocatable)


def _free(template: NodeTemplate) -> dict[str, int]:
    """Return what DaemonSet pods leave of a new node's allocatable resources."""
    taken: Counter[str] = Counter()
    for pod in template.daemons:
        for name, amount in pod_requests(pod).items():
            taken[name] += amount if name == CPU else amount * 1000
    return {name: have - taken[name] for name, have in _allocatable(template).items()}


def _amounts(written: Mapping[str, Quantity]) -> dict[str, int]:
    return {
        name: milli_value(amount) for name, amount in written.items() if not is_attach_limit(name)
    }


def _is_close(mine: Amounts, theirs: Amounts, ratio: float) -> bool:
    if mine.keys() != theirs.keys():
        return False
    pairs = ((mine[name], theirs[name]) for name in mine)
    return all(abs(one - other) <= max(one, other) * ratio for one, other in pairs)


def balance(
    new: NewNodes, candidates: Sequence[NodeGroupOption], options: AutoscalerOptions
) -> list[NewNodes]:
    """Split new nodes between similar node groups."""
    chosen = next((one for one in candidates if one.view.id == new.view.id), None)
    if chosen is None or new.view.options.zero_or_max_node_scaling:
        return [new]
    similar = [
        one.view for one in candidates if one is chosen or _is_substitute(one, chosen, options)
    ]
    if len(similar) == 1:
        return [new]
    shares = _shares(similar, new)
    views = [view for view in similar if shares[view.id]]
    placed = new.placed
    return [
        NewNodes(view, len(shares[view.id]), tuple(shares[view.id]), placed if not n else ())
        for n, view in enumerate(views)
    ]


def _is_substitute(
    one: NodeGroupOption, chosen: NodeGroupOption, options: AutoscalerOptions
) -> bool:
    if one.view.options.zero_or_max_node_scaling:
        return False
    helped = zip(chosen.option.estimate.helped, one.option.estimate.helped, strict=True)
    same_pods = all(also > 0 for needed, also in helped if needed)
    return same_pods and are_similar(one.template, chosen.template, options)


def _shares(similar: Sequence[NodeGroupView], new: NewNodes) -> dict[str, list[tuple[Pod, ...]]]:
    shares: dict[str, list[tuple[Pod, ...]]] = {view.id: [] for view in similar}
    smallest = [
        (view.target, view.id, view.group.max_size) for view in similar if view.max_increase
    ]
    heapify(smallest)
    for pods in new.pods:
        size, name, most = smallest[0]
        shares[name].append(pods)
        heapreplace(smallest, (size + 1 if size + 1 < most else 1 << 60, name, most))
    return shares
