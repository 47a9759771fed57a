"""Rules between pods: let spreading be less even, or drop an affinity that cannot be met.

A constraint may also count what it should not: domains whose nodes the pod does not tolerate, or
domains that there are not enough of. And a node may only lack the label that says where it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from bayplan.fit.explanation.fix import FixKind, Step
from bayplan.fit.explanation.neighbours import failing_spread, unmet_affinity
from bayplan.fit.explanation.steps.labels import labelled
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.plugins.pod_topology_spread.filter import Spread
from bayplan.kube.labels import HOSTNAME
from bayplan.kube.pods import Affinity, Pod, PodAffinityTerm, TopologySpreadConstraint

MOST_SKEW_ADDED = 4


def relax_spread(trial: Trial) -> Iterable[Step]:
    """Allow as much more skew as lets the node pass, or make the constraint a preference."""
    for index, constraint in enumerate(trial.pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue
        step = _more_skew(trial, index, constraint) or _preference(trial, index, constraint)
        if step is not None:
            yield step


def count_fewer_domains(trial: Trial) -> Iterable[Step]:
    """Leave nodes out that the pod cannot use anyway, or ask for no more domains than there are."""
    for index, constraint, spread in _failing(trial):
        for kind, text, cost, changed in _counting_less(constraint, len(spread.counts)):
            pod = _with_constraint(trial.pod, index, changed)
            if trial.snapshot.refusal(pod, trial.name) != trial.refusal:
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


def label_topology(trial: Trial) -> Iterable[Step]:
    """Give the node the label that says in which domain it stands, if it has none."""
    missing: dict[str, list[str]] = {}
    for spread in failing_spread(trial):
        if spread.domain is None:
            by_count = sorted(spread.counts, key=lambda value: (spread.counts[value], value))
            missing[spread.constraint.topology_key] = by_count
    for unmet in unmet_affinity(trial):
        if unmet.domain is None:
            missing.setdefault(unmet.term.topology_key, unmet.domains)
    wanted = {key: _value(trial, key, values) for key, values in missing.items()}
    labels = {key: value for key, value in wanted.items() if value}
    if labels and len(labels) == len(missing):
        said = ", ".join(f"{key}={value}" for key, value in labels.items())
        text = f"say where node {trial.name} stands: set label {said}"
        puts = (labelled(trial.node, labels),)
        yield Step(FixKind.LABEL_NODE, text, 2.0 * len(labels), trial.pod, puts)


def _value(trial: Trial, key: str, values: Sequence[str]) -> str:
    """The domain to say: the node's own name where each node is one, or the first that suits."""
    if key == HOSTNAME:
        return trial.name
    return next(iter(values), "")


def drop_affinity(trial: Trial) -> Iterable[Step]:
    """Drop each required (anti-)affinity term in turn."""
    affinity = trial.pod.spec.affinity
    if affinity is None:
        return
    together = affinity.pod_affinity.required if affinity.pod_affinity else []
    apart = affinity.pod_anti_affinity.required if affinity.pod_anti_affinity else []
    for term in together:
        yield _dropped(trial.pod, affinity, term, anti=False)
    for term in apart:
        yield _dropped(trial.pod, affinity, term, anti=True)


def _more_skew(trial: Trial, index: int, constraint: TopologySpreadConstraint) -> Step | None:
    for more in range(1, MOST_SKEW_ADDED + 1):
        skew = constraint.max_skew + more
        pod = _with_constraint(trial.pod, index, replace(constraint, max_skew=skew))
        if trial.snapshot.refusal(pod, trial.name) != trial.refusal:
            text = f"raise maxSkew over {constraint.topology_key} from {skew - more} to {skew}"
            what = f"spreading over {constraint.topology_key}, constraint {index}"
            return Step(FixKind.RELAX_SPREAD, text, 3.0 + more / 5, pod, less_of=what)
    return None


def _preference(trial: Trial, index: int, constraint: TopologySpreadConstraint) -> Step | None:
    softer = replace(constraint, when_unsatisfiable="ScheduleAnyway")
    pod = _with_constraint(trial.pod, index, softer)
    if trial.snapshot.refusal(pod, trial.name) == trial.refusal:
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


def _dropped(pod: Pod, affinity: Affinity, term: PodAffinityTerm, *, anti: bool) -> Step:
    name = "pod_anti_affinity" if anti else "pod_affinity"
    rules = affinity.pod_anti_affinity if anti else affinity.pod_affinity
    if rules is None:
        raise LookupError("the term is not of this pod")
    left = replace(rules, required=[one for one in rules.required if one is not term])
    changed = replace(affinity, **{name: left})
    return Step(
        FixKind.DROP_AFFINITY,
        f"drop the required {'anti-' if anti else ''}affinity to pods with {selected(term)}"
        f" over {term.topology_key}",
        5.0,
        replace(pod, spec=replace(pod.spec, affinity=changed)),
    )


def selected(term: PodAffinityTerm) -> str:
    """The pods that a term picks, as a person would say it."""
    selector = term.label_selector
    if selector is None:
        return "any labels"
    said = [f"{key}={value}" for key, value in selector.match_labels.items()]
    said += [f"{e.key} {e.operator} {e.values}" for e in selector.match_expressions]
    return ", ".join(said) or "any labels"
