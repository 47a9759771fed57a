"""How many volumes nodes say that they can attach: nothing, nonsense, or two things at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.drivers_in_use import attachable_drivers, drivers_in_use
from bayplan.checks.finding import CheckKind, Example, Finding, Severity, found, plural, who
from bayplan.fit.volumes.limits import Limit, LimitSource, limit_keys, limit_of
from bayplan.kube.attachlimits import IN_TREE_NAMES, limit_in, unreadable_limits
from bayplan.kube.labels import instance_type
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode

AGENT = "`bayplan node-agent --attach-limits`"
NO_LIMIT = CheckKind(
    "DriverWithoutLimit",
    Severity.WARNING,
    "a CSI driver in use says no limit on nodes, and neither node.status.allocatable nor the table"
    " of fallbacks does; no more than info if nothing speaks for it that the driver has a limit:"
    " neither what is known of the driver nor what it says on other nodes",
    "Schedulers take no limit for any number: pods are placed whose volumes the machine cannot"
    " attach, and hang in ContainerCreating. The autoscaler buys too few nodes.",
    "Set the limit of the driver's node plugin (most have --volume-attach-limit), or let"
    f" {AGENT} publish it by instance type.",
    (Node, CSINode),
)
UNREADABLE = CheckKind(
    "ImpossibleLimit",
    Severity.ERROR,
    "a node publishes an attach limit that is no whole number from 0 on",
    "The amount does not count. Where nobody else says a limit, the fallback of the plugin is"
    " taken, or no volume of the driver is placed there.",
    f"Correct the agent that writes it; {AGENT} writes only limits that can be.",
    (Node,),
)
ZERO = CheckKind(
    "LimitOfZero",
    Severity.WARNING,
    "a CSI driver in use says that it can attach no volume at all",
    "No pod with a volume of the driver is placed on these nodes.",
    "Look at the log of the driver's node plugin there; a driver without a limit must leave"
    " allocatable.count out of the CSINode instead of saying 0.",
    (Node, CSINode),
)
MOST_BELIEVED = 100_000
"""No driver that is known attaches so many volumes to one machine, nor does any machine."""
ABSURD = CheckKind(
    "LimitBeyondBelief",
    Severity.INFO,
    f"a CSI driver says that a node takes more than {MOST_BELIEVED:,} volumes",
    "It is as good as no limit: pods are placed there until the machine itself refuses a volume.",
    "A driver that has no limit must leave allocatable.count out of the CSINode; of one that has,"
    " set the limit of its node plugin (most have --volume-attach-limit).",
    (Node, CSINode),
)
DISAGREE = CheckKind(
    "LimitsDisagree",
    Severity.WARNING,
    "a node's CSINode and its status.allocatable say different limits of one driver",
    "Bayplan and kube-scheduler go by the CSINode; who reads the node alone counts otherwise.",
    "Find out which is right, and take the other away:"
    " kubectl get csinode NODE -o yaml; kubectl get node NODE -o yaml",
    (Node, CSINode),
)
DIFFER = CheckKind(
    "LimitsDiffer",
    Severity.INFO,
    "nodes of one instance type say different limits of one driver",
    "The autoscaler plans after one node of a group: where it has the higher limit, too few nodes"
    " are bought at first.",
    "Some machines lose places to network interfaces; if these do not, restart the driver's node"
    " plugin on those that differ.",
    (Node, CSINode),
)
KINDS = (NO_LIMIT, UNREADABLE, ZERO, ABSURD, DISAGREE, DIFFER)


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """One pass over the nodes and what drivers say of them."""
    yield from _unreadable(subject)
    said = _said(subject)
    for driver in sorted(drivers_in_use(subject) & attachable_drivers(subject)):
        yield from _of_driver(driver, said[driver])
    for driver in sorted(said):
        yield from _beyond_belief(driver, said[driver])
        yield from _differing(driver, said[driver])
    yield from _disagreeing(subject)


Said = list[tuple[Node, Limit]]
"""Nodes on which a driver is, with the limit that counts there."""


def _said(subject: CheckedCluster) -> defaultdict[str, Said]:
    found_by_driver: defaultdict[str, Said] = defaultdict(list)
    rules = subject.snapshot.cluster.rules
    for node, csinode in _with_drivers(subject):
        for driver in csinode.spec.drivers:
            limit = limit_of(driver.name, node, csinode, rules)
            found_by_driver[driver.name].append((node, limit))
    return found_by_driver


def _with_drivers(subject: CheckedCluster) -> Iterator[tuple[Node, CSINode]]:
    for csinode in subject.all(CSINode):
        if (node := subject.nodes.get(csinode.name)) is not None:
            yield node, csinode


def _unreadable(subject: CheckedCluster) -> Iterator[Finding]:
    wrong = [
        Example(name, f"{key}: {written!r}")
        for name, node in subject.nodes.items()
        for key, written in unreadable_limits(node.status.allocatable).items()
    ]
    if wrong:
        nodes = len({one.name for one in wrong})
        text = f"{who(nodes, 'node', 'publish')} attach limits that cannot be any"
        yield found(UNREADABLE, "Node", wrong, text, count=nodes)


def _of_driver(driver: str, said: Said) -> Iterator[Finding]:
    without = [node for node, limit in said if limit.source is LimitSource.NONE]
    zero = [node for node, limit in said if limit.count == 0]
    if without:
        text = f"{driver} says no limit on {_of_all(len(without), len(said))}"
        examples = [Example(node.name, instance_type(node.metadata.labels)) for node in without]
        limited = driver in IN_TREE_NAMES or any(limit.count is not None for _, limit in said)
        severity = Severity.WARNING if limited else Severity.INFO
        yield found(NO_LIMIT, "Node", examples, text, about=driver, severity=severity)
    if zero:
        text = f"{driver} takes no volume on {_of_all(len(zero), len(said))}"
        yield found(ZERO, "Node", [Example(node.name) for node in zero], text, about=driver)


def _beyond_belief(driver: str, said: Said) -> Iterator[Finding]:
    counts = [(node, limit.count) for node, limit in said if limit.count is not None]
    absurd = [Example(node.name, f"{count:,}") for node, count in counts if count > MOST_BELIEVED]
    if absurd:
        text = f"{driver} says a limit beyond belief on {_of_all(len(absurd), len(said))}"
        yield found(ABSURD, "Node", absurd, text, about=driver)


def _of_all(some: int, every: int) -> str:
    return f"{some:,} of {plural(every, 'node')} that {'has' if every == 1 else 'have'} it"


def _disagreeing(subject: CheckedCluster) -> Iterator[Finding]:
    by_driver: defaultdict[str, list[Example]] = defaultdict(list)
    for node, csinode in _with_drivers(subject):
        for one in csinode.spec.drivers:
            listed = one.allocatable.count if one.allocatable else None
            for key in limit_keys(one.name) if listed is not None else ():
                published = limit_in(node.status.allocatable.get(key, ""))
                if published is not None and published != listed:
                    told = f"CSINode {listed}, {key} {published}"
                    by_driver[one.name].append(Example(node.name, told))
    for driver, examples in sorted(by_driver.items()):
        text = f"{who(len(examples), 'node', 'say')} two different limits of {driver}"
        yield found(DISAGREE, "Node", examples, text, about=driver)


def _differing(driver: str, said: Said) -> Iterator[Finding]:
    by_type: defaultdict[str, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node, limit in said:
        kind = instance_type(node.metadata.labels)
        if kind and limit.source is LimitSource.CSINODE and limit.count is not None:
            by_type[kind][limit.count].append(node.name)
    for kind, counts in sorted(by_type.items()):
        if len(counts) > 1:
            told = ", ".join(f"{n} on {len(counts[n]):,}" for n in sorted(counts))
            text = f"nodes of type {kind} say different limits of {driver}: {told}"
            examples = (Example(name, str(n)) for n, names in counts.items() for name in names)
            yield found(DIFFER, "Node", examples, text, about=f"{driver} {kind}")
