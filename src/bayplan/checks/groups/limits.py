"""Attach limits that are missing, invalid, implausible or contradictory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.drivers_in_use import attachable_drivers, drivers_in_use
from bayplan.checks.findings import (
    CheckKind,
    Example,
    Finding,
    Severity,
    clause,
    make_finding,
    plural,
)
from bayplan.fit.volumes.limits import Limit, LimitSource, limit_keys, limit_of
from bayplan.kube.attachlimits import IN_TREE_NAMES, invalid_attach_limits, parse_attach_limit
from bayplan.kube.labels import instance_type
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode

AGENT = "`bayplan node-agent --limits`"
NO_LIMIT = CheckKind(
    "DriverWithoutLimit",
    Severity.WARNING,
    "a CSI driver in use reports no attach limit on nodes, and neither node.status.allocatable nor"
    " the table of fallbacks has one; only info if the driver is not known to have a limit and"
    " reports none on other nodes",
    "Schedulers treat a missing limit as unlimited: pods are scheduled whose volumes the machine"
    " cannot attach, and stay in ContainerCreating. The autoscaler adds too few nodes.",
    "Set the limit of the driver's node plugin (most have --volume-attach-limit), or let"
    f" {AGENT} publish it by instance type.",
    (Node, CSINode),
)
UNREADABLE = CheckKind(
    "ImpossibleLimit",
    Severity.ERROR,
    "a node publishes an attach limit that is not a whole number of 0 or more",
    "The limit is ignored. Without another limit, the fallback of the plugin applies, or no pod"
    " with a volume of the driver is scheduled to the node.",
    f"Correct the agent that publishes it; {AGENT} publishes valid limits only.",
    (Node,),
)
ZERO = CheckKind(
    "LimitOfZero",
    Severity.WARNING,
    "a CSI driver in use reports an attach limit of 0",
    "No pod with a volume of the driver is scheduled to these nodes.",
    "Check the log of the driver's node plugin there. A driver without a limit must omit"
    " allocatable.count from the CSINode instead of setting it to 0.",
    (Node, CSINode),
)
MAX_PLAUSIBLE = 100_000
"""No known driver attaches more volumes to one machine."""
IMPLAUSIBLE = CheckKind(
    "ImplausibleLimit",
    Severity.INFO,
    f"a CSI driver reports an attach limit of more than {MAX_PLAUSIBLE:,} volumes",
    "It has the effect of no limit: pods are scheduled to the node until attaching fails.",
    "A driver without a limit must omit allocatable.count from the CSINode. For a driver with one,"
    " set the limit of its node plugin (most have --volume-attach-limit).",
    (Node, CSINode),
)
DISAGREE = CheckKind(
    "LimitsDisagree",
    Severity.WARNING,
    "a node's CSINode and its status.allocatable have different attach limits of one driver",
    "Bayplan and kube-scheduler use the CSINode; programs that read only the node use the other.",
    "Find out which one is right, and remove the other:"
    " kubectl get csinode NODE -o yaml; kubectl get node NODE -o yaml",
    (Node, CSINode),
)
DIFFER = CheckKind(
    "LimitsDiffer",
    Severity.INFO,
    "nodes of one instance type have different attach limits of one driver",
    "The autoscaler plans new nodes with the declared limit, or with that of most nodes: if new"
    " nodes have a lower one, the first scale-up adds too few.",
    "On some machines network interfaces use attach slots. If not on these, restart the driver's"
    " node plugin on the nodes that differ.",
    (Node, CSINode),
)
KINDS = (NO_LIMIT, UNREADABLE, ZERO, IMPLAUSIBLE, DISAGREE, DIFFER)


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about published limits, and about the limits of each driver."""
    yield from _unreadable(cluster)
    limits = _limits_by_driver(cluster)
    for driver in sorted(drivers_in_use(cluster) & attachable_drivers(cluster)):
        yield from _missing_or_zero(driver, limits[driver])
    for driver in sorted(limits):
        yield from _implausible(driver, limits[driver])
        yield from _differing(driver, limits[driver])
    yield from _disagreeing(cluster)


NodeLimits = list[tuple[Node, Limit]]
"""Nodes on which a driver is registered, with the limit that applies there."""


def _limits_by_driver(cluster: CheckedCluster) -> defaultdict[str, NodeLimits]:
    found_by_driver: defaultdict[str, NodeLimits] = defaultdict(list)
    rules = cluster.snapshot.cluster.rules
    for node, csinode in _with_drivers(cluster):
        for driver in csinode.spec.drivers:
            limit = limit_of(driver.name, node, csinode, rules)
            found_by_driver[driver.name].append((node, limit))
    return found_by_driver


def _with_drivers(cluster: CheckedCluster) -> Iterator[tuple[Node, CSINode]]:
    for csinode in cluster.all(CSINode):
        if (node := cluster.nodes.get(csinode.name)) is not None:
            yield node, csinode


def _unreadable(cluster: CheckedCluster) -> Iterator[Finding]:
    wrong = [
        Example(name, f"{key}: {written!r}")
        for name, node in cluster.nodes.items()
        for key, written in invalid_attach_limits(node.status.allocatable).items()
    ]
    if wrong:
        nodes = len({one.name for one in wrong})
        text = f"{clause(nodes, 'node', 'publish')} invalid attach limits"
        yield make_finding(UNREADABLE, "Node", wrong, text, count=nodes)


def _missing_or_zero(driver: str, limits: NodeLimits) -> Iterator[Finding]:
    without = [node for node, limit in limits if limit.source is LimitSource.NONE]
    zero = [node for node, limit in limits if limit.count == 0]
    if without:
        text = f"{driver} reports no attach limit on {_of_all(len(without), len(limits))}"
        examples = [Example(node.name, instance_type(node.metadata.labels)) for node in without]
        limited = driver in IN_TREE_NAMES or any(limit.count is not None for _, limit in limits)
        severity = Severity.WARNING if limited else Severity.INFO
        yield make_finding(NO_LIMIT, "Node", examples, text, about=driver, severity=severity)
    if zero:
        text = f"{driver} has an attach limit of 0 on {_of_all(len(zero), len(limits))}"
        yield make_finding(ZERO, "Node", [Example(node.name) for node in zero], text, about=driver)


def _implausible(driver: str, limits: NodeLimits) -> Iterator[Finding]:
    counts = [(node, limit.count) for node, limit in limits if limit.count is not None]
    nodes = [Example(node.name, f"{count:,}") for node, count in counts if count > MAX_PLAUSIBLE]
    if nodes:
        text = f"{driver} has an implausible attach limit on {_of_all(len(nodes), len(limits))}"
        yield make_finding(IMPLAUSIBLE, "Node", nodes, text, about=driver)


def _of_all(some: int, every: int) -> str:
    return f"{some:,} of {plural(every, 'node')} that {'has' if every == 1 else 'have'} it"


def _disagreeing(cluster: CheckedCluster) -> Iterator[Finding]:
    by_driver: defaultdict[str, list[Example]] = defaultdict(list)
    for node, csinode in _with_drivers(cluster):
        for one in csinode.spec.drivers:
            listed = one.allocatable.count if one.allocatable else None
            for key in limit_keys(one.name) if listed is not None else ():
                published = parse_attach_limit(node.status.allocatable.get(key, ""))
                if published is not None and published != listed:
                    detail = f"CSINode {listed}, {key} {published}"
                    by_driver[one.name].append(Example(node.name, detail))
    for driver, examples in sorted(by_driver.items()):
        text = f"{plural(len(examples), 'node')} with two different attach limits of {driver}"
        yield make_finding(DISAGREE, "Node", examples, text, about=driver)


def _differing(driver: str, limits: NodeLimits) -> Iterator[Finding]:
    by_type: defaultdict[str, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node, limit in limits:
        kind = instance_type(node.metadata.labels)
        if kind and limit.source is LimitSource.CSINODE and limit.count is not None:
            by_type[kind][limit.count].append(node.name)
    for kind, counts in sorted(by_type.items()):
        if len(counts) > 1:
            listed = ", ".join(f"{n} on {plural(len(counts[n]), 'node')}" for n in sorted(counts))
            text = f"nodes of type {kind} have different attach limits of {driver}: {listed}"
            examples = (Example(name, str(n)) for n, names in counts.items() for name in names)
            yield make_finding(DIFFER, "Node", examples, text, about=f"{driver} {kind}")
