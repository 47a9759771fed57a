"""Rules between pods: let spreading be less even, or drop an affinity that cannot be met."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.fit.explanation.fix import FixKind, Step
from bayplan.fit.explanation.trial import Trial
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
            return Step(FixKind.RELAX_SPREAD, text, 3.0 + more / 5, pod)
    return None


def _preference(trial: Trial, index: int, constraint: TopologySpreadConstraint) -> Step | None:
    softer = replace(constraint, when_unsatisfiable="ScheduleAnyway")
    pod = _with_constraint(trial.pod, index, softer)
    if trial.snapshot.refusal(pod, trial.name) == trial.refusal:
        return None
    text = f"make spreading over {constraint.topology_key} a preference (ScheduleAnyway)"
    return Step(FixKind.RELAX_SPREAD, text, 4.0, pod)


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
        f"drop the required {'anti-' if anti else ''}affinity to pods with {_selected(term)}"
        f" over {term.topology_key}",
        5.0,
        replace(pod, spec=replace(pod.spec, affinity=changed)),
    )


def _selected(term: PodAffinityTerm) -> str:
    selector = term.label_selector
    if selector is None:
        return "any labels"
    said = [f"{key}={value}" for key, value in selector.match_labels.items()]
    said += [f"{e.key} {e.operator} {e.values}" for e in selector.match_expressions]
    return ", ".join(said) or "any labels"
