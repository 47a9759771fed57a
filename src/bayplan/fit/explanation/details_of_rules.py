"""Rules between pods in detail: the count of every domain and the skew, and the pods that are in
the way or that are missing.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.fit.explanation.neighbours import Blocker, blockers, failing_spread, unmet_affinity
from bayplan.fit.explanation.steps.rules import selected
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.plugins.inter_pod_affinity.filter import NOT_NEAR
from bayplan.fit.plugins.pod_topology_spread.filter import Spread

MOST_DOMAINS = 8
MOST_PODS = 3


def spread_details(trial: Trial) -> list[str]:
    """For each constraint that does not hold: the domains' counts, and the skew there would be."""
    return [_uneven(trial, spread) for spread in failing_spread(trial)]


def affinity_details(trial: Trial) -> list[str]:
    """The pods that keep this one off, or whom it does not meet."""
    if NOT_NEAR in trial.refusal.reasons:
        return _missing(trial)
    found = blockers(trial)
    said = [_in_the_way(trial, one) for one in found[:MOST_PODS]]
    more = len(found) - len(said)
    return [*said, f"and {more} more"] if more else said


def _uneven(trial: Trial, spread: Spread) -> str:
    key = spread.constraint.topology_key
    if spread.domain is None:
        return f"it has no label {key}"
    counts = trial.once(("counts", key, spread.index), lambda: _counts(spread.counts))
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
    said = [
        f"{name} {by_domain[name]}" for name in sorted(by_domain, key=lambda d: (by_domain[d], d))
    ]
    half = MOST_DOMAINS // 2
    if len(said) > MOST_DOMAINS:
        said = [*said[:half], f"{len(said) - MOST_DOMAINS} more", *said[-half:]]
    return ", ".join(said) or "none"


def _missing(trial: Trial) -> list[str]:
    said: list[str] = []
    for unmet in unmet_affinity(trial):
        key, pods = unmet.term.topology_key, selected(unmet.term)
        if unmet.domain is None:
            said.append(f"it has no label {key}, over which pods with {pods} are to be near")
            continue
        where = ", ".join(unmet.domains[:MOST_PODS]) if unmet.domains else "nowhere"
        more = len(unmet.domains) - MOST_PODS
        rest = f" and {more} more" if more > 0 else ""
        said.append(
            f"no pod with {pods} is in {key}={unmet.domain}; there are such in {where}{rest}"
        )
    return said


def _in_the_way(trial: Trial, blocker: Blocker) -> str:
    pod, key = blocker.record.pod, blocker.topology_key
    domain = trial.node.metadata.labels.get(key)
    whose = "this pod keeps away from it" if blocker.own_rule else "it keeps this pod away"
    on = "here" if blocker.record.node == trial.name else f"on node {blocker.record.node}"
    return f"pod {pod.key} is {on}, in {key}={domain}, and {whose}"
