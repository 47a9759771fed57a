"""Disruption budgets that never allow an eviction."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import CheckKind, Example, Finding, Severity, make_finding, plural
from bayplan.kube.workloads import PodDisruptionBudget

NEVER = CheckKind(
    "BudgetNeverAllows",
    Severity.WARNING,
    "a PodDisruptionBudget requires all of its pods to be healthy, and so never allows an eviction",
    "Nodes with these pods cannot be drained: upgrades stop there, and the autoscaler never removes"
    " them.",
    "Allow one eviction at a time: maxUnavailable: 1, or a minAvailable below the replicas.",
    (PodDisruptionBudget,),
)
KINDS = (NEVER,)


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield a finding about budgets whose status requires all of their pods."""
    examples = [
        Example(one.key, f"{one.status.desired_healthy} of {one.status.expected_pods} pods")
        for one in cluster.all(PodDisruptionBudget)
        if cluster.reports(one.key) and 0 < one.status.expected_pods <= one.status.desired_healthy
    ]
    if examples:
        yield make_finding(
            NEVER,
            "PodDisruptionBudget",
            examples,
            f"{plural(len(examples), 'disruption budget')} that never allow an eviction"
            if len(examples) > 1
            else "1 disruption budget that never allows an eviction",
        )
