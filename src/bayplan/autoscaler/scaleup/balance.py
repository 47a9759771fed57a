"""New nodes spread over similar node groups, so that their sizes come close to each other.

Similar is what Cluster Autoscaler calls so: the same resources, memory, what is allocatable and
what daemons leave of it within a few percent, and the same labels but for names and zones. And,
because nodes that attach fewer volumes are not alike: the same CSI drivers with the same limits.

The new nodes are given out one by one, each to the group that has the fewest, until a group is
full. What each node is for stays with it. A group takes part only if new nodes of it would help the
same pods; volumes that are tied to a zone are why it might not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace

from bayplan.autoscaler.estimate.options import NewNodes, NodeGroupOption
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit.batches import Template
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
"""Labels that groups which are alike may differ in."""
Amounts = Mapping[str, int]


def are_alike(one: Template, other: Template, options: AutoscalerOptions) -> bool:
    """Whether new nodes of both are as good as each other."""
    if options.balancing_label:
        mine, yours = one.node.metadata.labels, other.node.metadata.labels
        return all(mine.get(key) == yours.get(key) for key in options.balancing_label)
    return (
        _labels(one, options) == _labels(other, options)
        and _limits(one.csinode) == _limits(other.csinode)
        and _alike_capacity(one, other, options.memory_difference_ratio)
        and _near(_allocatable(one), _allocatable(other), options.max_allocatable_difference_ratio)
        and _near(_free(one), _free(other), options.max_free_difference_ratio)
    )


def _labels(template: Template, options: AutoscalerOptions) -> dict[str, str]:
    ignored = IGNORED | template.own_labels | set(options.balancing_ignore_label)
    zones = _zone_keys(template.csinode)
    labels = template.node.metadata.labels.items()
    return {key: value for key, value in labels if key not in ignored and key not in zones}


def _zone_keys(csinode: CSINode | None) -> frozenset[str]:
    """The labels by which drivers tell zones, whatever they are called."""
    drivers = csinode.spec.drivers if csinode is not None else ()
    return frozenset(key for driver in drivers for key in driver.topology_keys if "zone" in key)


def _limits(csinode: CSINode | None) -> dict[str, int | None]:
    drivers = csinode.spec.drivers if csinode is not None else ()
    return {
        driver.name: driver.allocatable.count if driver.allocatable is not None else None
        for driver in drivers
    }


def _alike_capacity(one: Template, other: Template, memory_ratio: float) -> bool:
    mine, yours = _amounts(one.node.status.capacity), _amounts(other.node.status.capacity)
    memory = {MEMORY: mine.pop(MEMORY, 0)}, {MEMORY: yours.pop(MEMORY, 0)}
    return mine == yours and _near(*memory, memory_ratio)


def _allocatable(template: Template) -> dict[str, int]:
    return _amounts(template.node.status.allocatable)


def _free(template: Template) -> dict[str, int]:
    """What daemons leave of a new node."""
    taken: Counter[str] = Counter()
    for pod in template.daemons:
        for name, amount in pod_requests(pod).items():
            taken[name] += amount if name == CPU else amount * 1000
    return {name: have - taken[name] for name, have in _allocatable(template).items()}


def _amounts(written: Mapping[str, Quantity]) -> dict[str, int]:
    return {
        name: milli_value(amount) for name, amount in written.items() if not is_attach_limit(name)
    }


def _near(mine: Amounts, yours: Amounts, ratio: float) -> bool:
    if mine.keys() != yours.keys():
        return False
    pairs = ((mine[name], yours[name]) for name in mine)
    return all(abs(one - other) <= max(one, other) * ratio for one, other in pairs)


def balanced(
    purchase: NewNodes, candidates: Sequence[NodeGroupOption], options: AutoscalerOptions
) -> list[NewNodes]:
    """A purchase, as several of groups that are alike."""
    chosen = next((one for one in candidates if one.view.id == purchase.view.id), None)
    if chosen is None or purchase.view.options.zero_or_max_node_scaling:
        return [purchase]
    alike = [one.view for one in candidates if one is chosen or _stands_in(one, chosen, options)]
    if len(alike) == 1:
        return [purchase]
    shares = _shares(alike, purchase)
    views = [view for view in alike if shares[view.id]]
    placed = purchase.placed
    return [
        NewNodes(view, len(shares[view.id]), tuple(shares[view.id]), placed if not n else ())
        for n, view in enumerate(views)
    ]


def _stands_in(one: NodeGroupOption, chosen: NodeGroupOption, options: AutoscalerOptions) -> bool:
    if one.view.options.zero_or_max_node_scaling:
        return False
    helped = zip(chosen.option.estimate.helped, one.option.estimate.helped, strict=True)
    same_pods = all(also > 0 for needed, also in helped if needed)
    return same_pods and are_alike(one.template, chosen.template, options)


def _shares(alike: Sequence[NodeGroupView], purchase: NewNodes) -> dict[str, list[tuple[Pod, ...]]]:
    shares: dict[str, list[tuple[Pod, ...]]] = {view.id: [] for view in alike}
    smallest = [(view.target, view.id, view.group.max_size) for view in alike if view.room]
    heapify(smallest)
    for pods in purchase.pods:
        size, name, most = smallest[0]
        shares[name].append(pods)
        heapreplace(smallest, (size + 1 if size + 1 < most else 1 << 60, name, most))
    return shares
