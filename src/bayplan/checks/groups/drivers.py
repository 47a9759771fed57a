"""CSI drivers that are not where they are needed, and nodes with more volumes than they take."""

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
from bayplan.checks.finding import CheckKind, Example, Finding, Severity, found, plural, who
from bayplan.fit.volumes.identity import BY_PLUGIN_NAME
from bayplan.fit.volumes.limits import LimitSource
from bayplan.kube.labels import instance_type
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSIDriver, CSINode, PersistentVolumeClaim, StorageClass

NODE_WITHOUT = CheckKind(
    "NodeWithoutDriver",
    Severity.WARNING,
    "a node has been ready for a while without a CSI driver that most nodes like it have",
    "Bayplan places no pod there that needs the driver. kube-scheduler does, unless the CSIDriver"
    " says preventPodSchedulingIfMissing: true; such pods hang in ContainerCreating.",
    "Look at the driver's node plugin there: kubectl get pods -A -o wide"
    " --field-selector spec.nodeName=NODE",
    (Node, CSINode),
)
USED_WITHOUT = CheckKind(
    "VolumesWithoutDriver",
    Severity.ERROR,
    "pods on a node use volumes of a CSI driver that is not registered there",
    "The kubelet cannot mount, nor unmount, volumes of a driver that it does not know: pods do not"
    " start, and those that run cannot be moved.",
    "Bring the driver's node plugin back on these nodes, or move the pods away.",
    (Node, CSINode, Pod),
)
OVER = CheckKind(
    "NodeOverLimit",
    Severity.ERROR,
    "a node has more volumes than it can attach",
    "Volumes beyond the limit stay unattached and their pods do not start; nothing more comes to"
    " the node until it has fewer.",
    "bayplan volumes --over 100% shows who holds them. Move pods away, or correct the limit if"
    " it was lowered by mistake.",
    (Node, Pod),
)
NO_OBJECT = CheckKind(
    "CSIDriverMissing",
    Severity.INFO,
    "a driver is registered on nodes, and there is no CSIDriver of its name",
    "Kubernetes takes the defaults: volumes are attached, capacity is not looked at, and"
    " kube-scheduler does not wait for the driver on new nodes.",
    "Install the CSIDriver that comes with the driver's manifests.",
    (CSIDriver, CSINode),
)
NOWHERE = CheckKind(
    "DriverOnNoNode",
    Severity.WARNING,
    "a StorageClass is of a CSI driver that is registered on no node",
    "Volumes of the class may be made, and no pod can use them.",
    "Install the driver's node plugin (a DaemonSet), or delete the class if nobody uses it.",
    (Node, CSIDriver, CSINode, StorageClass),
)
NO_PROVISIONER = CheckKind(
    "ProvisionerNowhere",
    Severity.WARNING,
    "claims wait for a provisioner of which there is no CSIDriver and that is on no node",
    "The claims stay Pending, and so do their pods.",
    "Correct the class's provisioner, or install it. Provisioners that are no CSI drivers have"
    " pods of their own: look at their logs.",
    (Node, CSINode, StorageClass, PersistentVolumeClaim),
)
KINDS = (NODE_WITHOUT, USED_WITHOUT, OVER, NO_OBJECT, NOWHERE, NO_PROVISIONER)
NOBODY_PROVISIONS = "kubernetes.io/no-provisioner"
TOPOLOGY = ("zone", "region", "hostname")


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """What is missing where, and what is too much."""
    yield from _nodes_without(subject)
    yield from _used_without(subject)
    yield from _over(subject)
    yield from _objects(subject)
    yield from _provisioners(subject)


def _nodes_without(subject: CheckedCluster) -> Iterator[Finding]:
    """Drivers that at least half of the nodes alike have, two at least."""
    alike: defaultdict[Hashable, list[Node]] = defaultdict(list)
    shared = _shared_labels(subject)
    for node in subject.nodes.values():
        alike[_likeness(node, shared)].append(node)
    where, used = registered_on(subject), drivers_in_use(subject)
    missing: defaultdict[str, list[Node]] = defaultdict(list)
    for driver in sorted(where.keys() & used):
        for nodes in alike.values():
            lacking = [one for one in nodes if one.name not in where[driver]]
            if len(nodes) - len(lacking) >= max(2, len(lacking)):
                missing[driver] += [one for one in lacking if _is_settled(one, subject)]
    for driver, nodes in missing.items():
        if nodes:
            examples = (Example(one.name, instance_type(one.metadata.labels)) for one in nodes)
            text = f"{plural(len(nodes), 'node')} without {driver}, which most nodes alike have"
            yield found(NODE_WITHOUT, "Node", examples, text, about=driver)


def _shared_labels(subject: CheckedCluster) -> frozenset[tuple[str, str]]:
    """Labels that at least two nodes have, but for those of places and those of drivers' own."""
    drivers = (one for csinode in subject.all(CSINode) for one in csinode.spec.drivers)
    places = {key for one in drivers for key in one.topology_keys}
    counts = Counter(
        label for node in subject.nodes.values() for label in node.metadata.labels.items()
    )
    return frozenset(
        label
        for label, count in counts.items()
        if count > 1 and label[0] not in places and label[0].rpartition("/")[2] not in TOPOLOGY
    )


def _likeness(node: Node, shared: frozenset[tuple[str, str]]) -> Hashable:
    """Nodes of one type, with the same taints, and the same labels but for what is theirs alone."""
    labels = node.metadata.labels
    taints = frozenset((one.key, one.value, one.effect) for one in node.spec.taints)
    return instance_type(labels), taints, shared.intersection(labels.items())


def _is_settled(node: Node, subject: CheckedCluster) -> bool:
    """Whether a node takes pods, and has for a while."""
    ready = readiness(node)
    if node.spec.unschedulable or node.metadata.deletion_timestamp is not None:
        return False
    if ready is not None and (
        ready.status != "True" or subject.is_young(ready.last_transition_time)
    ):
        return False
    return not subject.is_young(node.metadata.creation_timestamp)


def _used_without(subject: CheckedCluster) -> Iterator[Finding]:
    """In-tree plugins need no driver, and a node without a CSINode may have none to say."""
    csinodes = {one.name for one in subject.all(CSINode)}
    certain = attachable_drivers(subject)
    by_driver: defaultdict[str, list[Example]] = defaultdict(list)
    for one in subject.volumes:
        pods = sorted({pod for use in one.uses for pod in use.pods})
        is_missing = one.limit.source is LimitSource.MISSING and one.driver in certain
        if pods and is_missing and one.node in csinodes:
            by_driver[one.driver].append(Example(one.node, _pods(pods)))
    for driver, examples in sorted(by_driver.items()):
        text = f"{plural(len(examples), 'node')} without {driver}, with pods that use its volumes"
        yield found(USED_WITHOUT, "Node", examples, text, about=driver)


def _pods(pods: list[str]) -> str:
    return pods[0] if len(pods) == 1 else f"{pods[0]} and {plural(len(pods) - 1, 'more pod')}"


def _over(subject: CheckedCluster) -> Iterator[Finding]:
    by_driver: defaultdict[str, list[Example]] = defaultdict(list)
    for one in subject.volumes:
        if one.over:
            told = f"{one.used} volumes, {one.limit.count} by {one.limit.source.value}"
            by_driver[one.driver].append(Example(one.node, told))
    for driver, examples in sorted(by_driver.items()):
        text = f"{plural(len(examples), 'node')} over the limit of {driver}"
        yield found(OVER, "Node", examples, text, about=driver)


def _objects(subject: CheckedCluster) -> Iterator[Finding]:
    """CSIDrivers without nodes, and drivers of nodes without a CSIDriver."""
    where, known = registered_on(subject), {one.name: one for one in subject.all(CSIDriver)}
    missing = [
        Example(driver, f"on {plural(len(nodes), 'node')}")
        for driver, nodes in where.items()
        if driver not in known
    ]
    if missing:
        text = f"{plural(len(missing), 'driver')} of nodes without a CSIDriver"
        yield found(NO_OBJECT, "CSIDriver", missing, text)
    wanted: defaultdict[str, list[Example]] = defaultdict(list)
    for one in subject.all(StorageClass):
        driver = driver_of_class(one)
        if driver in known and driver not in where:
            wanted[driver].append(Example(one.name))
    if not any(_is_settled(node, subject) for node in subject.nodes.values()):
        return  # a cluster that only begins has its drivers yet to come
    for driver, classes in sorted(wanted.items()):
        want = who(len(classes), "class", "want")
        text = f"{driver} is registered on no node, and {want} it"
        yield found(NOWHERE, "StorageClass", classes, text, about=driver)


def _provisioners(subject: CheckedCluster) -> Iterator[Finding]:
    known = {one.name for one in subject.all(CSIDriver)} | registered_on(subject).keys()
    classes = {
        one.name: one.provisioner
        for one in subject.all(StorageClass)
        if not {one.provisioner, driver_of_class(one)} & known
        and one.provisioner not in BY_PLUGIN_NAME
        and one.provisioner != NOBODY_PROVISIONS
    }
    waiting: defaultdict[str, list[Example]] = defaultdict(list)
    for claim in subject.all(PersistentVolumeClaim):
        name = claim.spec.storage_class_name or ""
        if name in classes and subject.tells_of(claim.key) and _waits(claim, subject):
            waiting[name].append(Example(claim.key))
    for name, claims in sorted(waiting.items()):
        wait = who(len(claims), "claim", "wait", f"of class {name}")
        text = f"{wait} for {classes[name]}, which nobody seems to run"
        yield found(NO_PROVISIONER, "PersistentVolumeClaim", claims, text, about=name)


def _waits(claim: PersistentVolumeClaim, subject: CheckedCluster) -> bool:
    meta = claim.metadata
    gone = meta.deletion_timestamp is not None
    return not claim.spec.volume_name and not gone and not subject.is_young(meta.creation_timestamp)
