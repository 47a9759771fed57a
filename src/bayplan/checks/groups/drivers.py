"""CSI drivers that are missing where they are needed, and nodes over their attach limit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator

from bayplan.checks.cluster import CheckedCluster, readiness
from bayplan.checks.drivers_in_use import (
    attachable_drivers,
    driver_of_class,
    drivers_in_use,
    registered_on,
)
from bayplan.checks.findings import (
    CheckKind,
    Example,
    Finding,
    Severity,
    clause,
    make_finding,
    plural,
)
from bayplan.fit.volumes.identity import BY_PLUGIN_NAME
from bayplan.fit.volumes.limits import LimitSource
from bayplan.kube.labels import instance_type
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSIDriver, CSINode, PersistentVolumeClaim, StorageClass

NODE_WITHOUT = CheckKind(
    "NodeWithoutDriver",
    Severity.WARNING,
    "a node has been ready for a while without a CSI driver that most similar nodes have",
    "Bayplan schedules no pod that needs the driver to the node. kube-scheduler does, unless the"
    " CSIDriver has preventPodSchedulingIfMissing: true; such pods stay in ContainerCreating.",
    "Check the driver's node plugin on the node: kubectl get pods -A -o wide"
    " --field-selector spec.nodeName=NODE",
    (Node, CSINode),
)
USED_WITHOUT = CheckKind(
    "VolumesWithoutDriver",
    Severity.ERROR,
    "pods on a node use volumes of a CSI driver that is not registered there",
    "The kubelet can neither mount nor unmount volumes of an unregistered driver: pods do not"
    " start, and running pods cannot be moved.",
    "Restore the driver's node plugin on these nodes, or move the pods to other nodes.",
    (Node, CSINode, Pod),
)
OVER = CheckKind(
    "NodeOverLimit",
    Severity.ERROR,
    "a node has more volumes than its attach limit",
    "Volumes over the limit are not attached and their pods do not start; no pod with a volume of"
    " the driver is scheduled to the node.",
    "bayplan volumes --over 100% shows the pods that use them. Move pods to other nodes, or correct"
    " the limit if it was lowered by mistake.",
    (Node, Pod),
)
NO_OBJECT = CheckKind(
    "CSIDriverMissing",
    Severity.INFO,
    "a driver is registered on nodes, but has no CSIDriver object",
    "Kubernetes uses the defaults: volumes are attached, storage capacity is not tracked, and"
    " kube-scheduler does not wait for the driver on new nodes.",
    "Install the CSIDriver that comes with the driver's manifests.",
    (CSIDriver, CSINode),
)
NOWHERE = CheckKind(
    "DriverOnNoNode",
    Severity.WARNING,
    "a StorageClass uses a CSI driver that is registered on no node",
    "Volumes of the class can be provisioned, but no pod can use them.",
    "Install the driver's node plugin (a DaemonSet), or delete the class if it is not used.",
    (Node, CSIDriver, CSINode, StorageClass),
)
NO_PROVISIONER = CheckKind(
    "ProvisionerMissing",
    Severity.WARNING,
    "claims wait for a provisioner that has no CSIDriver and is registered on no node",
    "The claims stay Pending, and so do their pods.",
    "Correct the class's provisioner, or install it. For a provisioner that is no CSI driver, check"
    " its pods and their logs.",
    (Node, CSINode, StorageClass, PersistentVolumeClaim),
)
KINDS = (NODE_WITHOUT, USED_WITHOUT, OVER, NO_OBJECT, NOWHERE, NO_PROVISIONER)
NO_PROVISIONER_NAME = "kubernetes.io/no-provisioner"
TOPOLOGY = ("zone", "region", "hostname")


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about missing drivers, exceeded limits, and missing provisioners."""
    yield from _nodes_without(cluster)
    yield from _used_without(cluster)
    yield from _over(cluster)
    yield from _objects(cluster)
    yield from _provisioners(cluster)


def _nodes_without(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield nodes without a driver that at least half of similar nodes, and two, have."""
    similar: defaultdict[Hashable, list[Node]] = defaultdict(list)
    shared = _shared_labels(cluster)
    for node in cluster.nodes.values():
        similar[_node_kind(node, shared)].append(node)
    where, used = registered_on(cluster), drivers_in_use(cluster)
    missing: defaultdict[str, list[Node]] = defaultdict(list)
    for driver in sorted(where.keys() & used):
        for nodes in similar.values():
            lacking = [one for one in nodes if one.name not in where[driver]]
            if len(nodes) - len(lacking) >= max(2, len(lacking)):
                missing[driver] += [one for one in lacking if _is_settled(one, cluster)]
    for driver, nodes in missing.items():
        if nodes:
            examples = (Example(one.name, instance_type(one.metadata.labels)) for one in nodes)
            text = f"{plural(len(nodes), 'node')} without {driver}, which most similar nodes have"
            yield make_finding(NODE_WITHOUT, "Node", examples, text, about=driver)


def _shared_labels(cluster: CheckedCluster) -> frozenset[tuple[str, str]]:
    """Return the labels that at least two nodes have, without topology and drivers' labels."""
    drivers = (one for csinode in cluster.all(CSINode) for one in csinode.spec.drivers)
    topology_keys = {key for one in drivers for key in one.topology_keys}
    counts = Counter(
        label for node in cluster.nodes.values() for label in node.metadata.labels.items()
    )
    return frozenset(
        label
        for label, count in counts.items()
        if count > 1
        and label[0] not in topology_keys
        and label[0].rpartition("/")[2] not in TOPOLOGY
    )


def _node_kind(node: Node, shared: frozenset[tuple[str, str]]) -> Hashable:
    """Return what similar nodes have in common: instance type, taints, and shared labels."""
    labels = node.metadata.labels
    taints = frozenset((one.key, one.value, one.effect) for one in node.spec.taints)
    return instance_type(labels), taints, shared.intersection(labels.items())


def _is_settled(node: Node, cluster: CheckedCluster) -> bool:
    """Return whether a node has been ready and schedulable for the grace period."""
    ready = readiness(node)
    if node.spec.unschedulable or node.metadata.deletion_timestamp is not None:
        return False
    if ready is not None and (
        ready.status != "True" or cluster.is_young(ready.last_transition_time)
    ):
        return False
    return not cluster.is_young(node.metadata.creation_timestamp)


def _used_without(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield nodes with pods that use volumes of an unregistered driver.

    Nodes without a CSINode are left out: nothing is known about their drivers.
    """
    csinodes = {one.name for one in cluster.all(CSINode)}
    certain = attachable_drivers(cluster)
    by_driver: defaultdict[str, list[Example]] = defaultdict(list)
    for one in cluster.volumes:
        pods = sorted({pod for use in one.uses for pod in use.pods})
        is_missing = one.limit.source is LimitSource.MISSING and one.driver in certain
        if pods and is_missing and one.node in csinodes:
            by_driver[one.driver].append(Example(one.node, _pods(pods)))
    for driver, examples in sorted(by_driver.items()):
        text = f"{plural(len(examples), 'node')} without {driver}, with pods that use its volumes"
        yield make_finding(USED_WITHOUT, "Node", examples, text, about=driver)


def _pods(pods: list[str]) -> str:
    return pods[0] if len(pods) == 1 else f"{pods[0]} and {plural(len(pods) - 1, 'more pod')}"


def _over(cluster: CheckedCluster) -> Iterator[Finding]:
    by_driver: defaultdict[str, list[Example]] = defaultdict(list)
    for one in cluster.volumes:
        if one.over:
            detail = f"{one.used} volumes, limit {one.limit.count} from {one.limit.source.value}"
            by_driver[one.driver].append(Example(one.node, detail))
    for driver, examples in sorted(by_driver.items()):
        text = f"{plural(len(examples), 'node')} over the attach limit of {driver}"
        yield make_finding(OVER, "Node", examples, text, about=driver)


def _objects(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield drivers without a CSIDriver, and classes whose driver is on no node."""
    where, known = registered_on(cluster), {one.name: one for one in cluster.all(CSIDriver)}
    missing = [
        Example(driver, f"on {plural(len(nodes), 'node')}")
        for driver, nodes in where.items()
        if driver not in known
    ]
    if missing:
        text = f"{plural(len(missing), 'registered driver')} without a CSIDriver object"
        yield make_finding(NO_OBJECT, "CSIDriver", missing, text)
    wanted: defaultdict[str, list[Example]] = defaultdict(list)
    for one in cluster.all(StorageClass):
        driver = driver_of_class(one)
        if driver in known and driver not in where:
            wanted[driver].append(Example(one.name))
    if not any(_is_settled(node, cluster) for node in cluster.nodes.values()):
        return  # the drivers of a new cluster may not have registered yet
    for driver, classes in sorted(wanted.items()):
        using = clause(len(classes), "class", "use")
        text = f"{driver} is registered on no node, and {using} it"
        yield make_finding(NOWHERE, "StorageClass", classes, text, about=driver)


def _provisioners(cluster: CheckedCluster) -> Iterator[Finding]:
    known = {one.name for one in cluster.all(CSIDriver)} | registered_on(cluster).keys()
    classes = {
        one.name: one.provisioner
        for one in cluster.all(StorageClass)
        if not {one.provisioner, driver_of_class(one)} & known
        and one.provisioner not in BY_PLUGIN_NAME
        and one.provisioner != NO_PROVISIONER_NAME
    }
    waiting: defaultdict[str, list[Example]] = defaultdict(list)
    for claim in cluster.all(PersistentVolumeClaim):
        name = claim.spec.storage_class_name or ""
        if name in classes and cluster.reports(claim.key) and _is_pending(claim, cluster):
            waiting[name].append(Example(claim.key))
    for name, claims in sorted(waiting.items()):
        wait = clause(len(claims), "claim", "wait", f"of class {name}")
        text = f"{wait} for provisioner {classes[name]}, which does not seem to be installed"
        yield make_finding(NO_PROVISIONER, "PersistentVolumeClaim", claims, text, about=name)


def _is_pending(claim: PersistentVolumeClaim, cluster: CheckedCluster) -> bool:
    meta = claim.metadata
    gone = meta.deletion_timestamp is not None
    return not claim.spec.volume_name and not gone and not cluster.is_young(meta.creation_timestamp)
