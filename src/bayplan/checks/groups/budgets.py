"""Disruption budgets that let nobody go, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.finding import CheckKind, Example, Finding, Severity, found, plural
from bayplan.kube.workloads import PodDisruptionBudget

NEVER = CheckKind(
    "BudgetNeverAllows",
    Severity.WARNING,
    "a PodDisruptionBudget wants all of its pods healthy, and so allows no eviction ever",
    "Nodes with these pods cannot be drained: upgrades stop there, and the autoscaler never gives"
    " them back.",
    "Let one pod go at a time: maxUnavailable: 1, or a minAvailable below the replicas.",
    (PodDisruptionBudget,),
)
KINDS = (NEVER,)


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """Budgets whose own status says that all of their pods are needed."""
    examples = [
        Example(one.key, f"{one.status.desired_healthy} of {one.status.expected_pods} pods")
        for one in subject.all(PodDisruptionBudget)
        if subject.tells_of(one.key) and 0 < one.status.expected_pods <= one.status.desired_healthy
    ]
    if examples:
        yield found(
            NEVER,
            "PodDisruptionBudget",
            examples,
            f"{plural(len(examples), 'disruption budget')} under which no pod may ever be evicted",
        )
