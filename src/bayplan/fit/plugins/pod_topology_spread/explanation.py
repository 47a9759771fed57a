"""How a constraint finds pods spread, and what would lift a refusal: let spreading be less even.

A constraint may also count what it should not: domains whose nodes the pod does not tolerate, or
domains that there are not enough of. And a node may only lack the topology label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.explanation import (
    Explainer,
    Proposal,
    RepairEstimate,
    Trial,
    label_topology,
    pods_in_domain,
    repair_by_domain,
)
from bayplan.fit.plugins.pod_topology_spread.filter import PodTopologySpread, Spread, pods_to_spread
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Pod, TopologySpreadConstraint

LEAST_COST = 2.5
MOST_DOMAINS = 8
MOST_SKEW_ADDED = 4


def relax_spread(trial: Trial) -> Iterable[Step]:
    """Propose more skew, as little as will do, or to make the constraint a preference."""
    for index, constraint in enumerate(trial.pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue
        step = _more_skew(trial, index, constraint) or _preference(trial, index, constraint)
        if step is not None:
            yield step


def count_fewer_domains(trial: Trial) -> Iterable[Step]:
    """Propose to leave out nodes that the pod cannot use, or to lower minDomains."""
    for index, constraint, spread in _failing(trial):
        for kind, text, cost, changed in _counting_less(constraint, len(spread.counts)):
            pod = _with_constraint(trial.pod, index, changed)
            if trial.refusal_if(pod) != trial.refusal:
                yield Step(kind, text, cost, pod)


def _counting_less(
    constraint: TopologySpreadConstraint, domains: int
) -> Iterable[tuple[FixKind, str, float, TopologySpreadConstraint]]:
    key, least = constraint.topology_key, constraint.min_domains
    if constraint.node_taints_policy != "Honor":
        text = f"leave tainted nodes out of spreading over {key} (nodeTaintsPolicy: Honor)"
        yield FixKind.HONOR_TAINTS, text, 2.5, replace(constraint, node_taints_policy="Honor")
    if constraint.node_affinity_policy != "Honor":
        text = f"leave nodes out of spreading over {key} that the pod does not select"
        text += " (nodeAffinityPolicy: Honor)"
        yield FixKind.HONOR_AFFINITY, text, 2.5, replace(constraint, node_affinity_policy="Honor")
    if least is not None and least > domains:
        text = f"lower minDomains over {key} from {least} to {domains}"
        yield FixKind.RELAX_SPREAD, text, 3.0, replace(constraint, min_domains=domains or None)


def _more_skew(trial: Trial, index: int, constraint: TopologySpreadConstraint) -> Step | None:
    for more in range(1, MOST_SKEW_ADDED + 1):
        skew = constraint.max_skew + more
        pod = _with_constraint(trial.pod, index, replace(constraint, max_skew=skew))
        if trial.refusal_if(pod) != trial.refusal:
            text = f"raise maxSkew over {constraint.topology_key} from {skew - more} to {skew}"
            what = f"spreading over {constraint.topology_key}, constraint {index}"
            return Step(FixKind.RELAX_SPREAD, text, 3.0 + more / 5, pod, less_of=what)
    return None


def _preference(trial: Trial, index: int, constraint: TopologySpreadConstraint) -> Step | None:
    softer = replace(constraint, when_unsatisfiable="ScheduleAnyway")
    pod = _with_constraint(trial.pod, index, softer)
    if trial.refusal_if(pod) == trial.refusal:
        return None
    text = f"make spreading over {constraint.topology_key} a preference (ScheduleAnyway)"
    return Step(FixKind.RELAX_SPREAD, text, 4.0, pod)


def _failing(trial: Trial) -> Iterable[tuple[int, TopologySpreadConstraint, Spread]]:
    """The pod's own constraints that do not hold on the node, each with its place in the spec."""
    every = enumerate(trial.pod.spec.topology_spread_constraints)
    hard = [(at, one) for at, one in every if one.when_unsatisfiable == "DoNotSchedule"]
    for spread in failing_spread(trial) if hard else ():
        yield (*hard[spread.index], spread)


def _with_constraint(pod: Pod, index: int, constraint: TopologySpreadConstraint) -> Pod:
    constraints = list(pod.spec.topology_spread_constraints)
    constraints[index] = constraint
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=constraints))


def move_counted(trial: Trial) -> Iterable[Step]:
    """The first pod that makes the node's domain too full and can go to another."""
    for spread in failing_spread(trial)[:1]:
        yield from trial.move_one(counted_in_domain(trial, spread))


def failing_spread(trial: Trial) -> list[Spread]:
    """The spread constraints that do not hold on the node."""
    spreading = trial.filter(PodTopologySpread)
    return spreading.failing(trial.slot) if spreading is not None else []


def counted_in_domain(trial: Trial, spread: Spread) -> list[PodRecord]:
    """The pods in the node's domain that a constraint counts."""
    cluster = trial.cluster
    match = pods_to_spread(spread.constraint.selector, cluster.signatures.of(trial.pod))

    def counted(record: PodRecord) -> bool:
        meta, terminating = record.pod.metadata, record.terminating
        return match.picks(meta.namespace, meta.labels, cluster.namespaces, terminating=terminating)

    key = spread.constraint.topology_key
    return pods_in_domain(trial, key, match, counted)


def spread_details(trial: Trial) -> list[str]:
    """For each constraint that does not hold: the domains' counts, and the skew there would be."""
    return [_uneven(trial, spread) for spread in failing_spread(trial)]


def _uneven(trial: Trial, spread: Spread) -> str:
    key = spread.constraint.topology_key
    if spread.domain is None:
        return f"it has no label {key}"
    counts = trial.cached(("counts", key, spread.index), lambda: _counts(spread.counts))
    here = spread.counts.get(spread.domain, 0)
    needed = spread.constraint.min_domains
    few = f", {needed} domains wanted" if needed > len(spread.counts) else ""
    return (
        f"{key}={spread.domain} has {here} matching pods, the fewest is {spread.least}:"
        f" with this pod a skew of {spread.skew}, at most {spread.constraint.max_skew} allowed"
        f" (by domain: {counts}{few})"
    )


def _counts(by_domain: Mapping[str, int]) -> str:
    """Counts by domain, the fewest first; of many, both ends."""
    described = [
        f"{name} {by_domain[name]}" for name in sorted(by_domain, key=lambda d: (by_domain[d], d))
    ]
    half = MOST_DOMAINS // 2
    if len(described) > MOST_DOMAINS:
        described = [*described[:half], f"{len(described) - MOST_DOMAINS} more", *described[-half:]]
    return ", ".join(described) or "none"


def _estimate_repair(
    one: Filter, pod: Pod, cluster: ClusterState, slots: SlotArray
) -> RepairEstimate:
    return repair_by_domain(one, pod, cluster, slots, LEAST_COST)


EXPLAINER = Explainer(
    details=spread_details,
    proposals=(
        Proposal(label_topology),
        Proposal(count_fewer_domains, tries=True),
        Proposal(move_counted, tries=True),
        Proposal(relax_spread, tries=True),
    ),
    least_cost=LEAST_COST,
    estimate_repair=_estimate_repair,
)
