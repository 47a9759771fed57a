"""All check groups, and running them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import CheckKind, Finding
from bayplan.checks.groups import (
    attachments,
    budgets,
    control_plane,
    drivers,
    limits,
    node_groups,
    nodes,
    pending_pods,
    queues,
    storage,
    unreadable,
    versions,
)

CheckGroup = Callable[[CheckedCluster], Iterable[Finding]]
GROUPS: tuple[tuple[tuple[CheckKind, ...], CheckGroup], ...] = (
    (nodes.KINDS, nodes.find),
    (limits.KINDS, limits.find),
    (drivers.KINDS, drivers.find),
    (attachments.KINDS, attachments.find),
    (storage.KINDS, storage.find),
    (versions.KINDS, versions.find),
    (pending_pods.KINDS, pending_pods.find),
    (queues.KINDS, queues.find),
    (node_groups.KINDS, node_groups.find),
    (budgets.KINDS, budgets.find),
    (control_plane.KINDS, control_plane.find),
    (unreadable.KINDS, unreadable.find),
)
KINDS: dict[str, CheckKind] = {kind.code: kind for kinds, _ in GROUPS for kind in kinds}
"""Every kind of finding, by its code."""
RENAMED = {
    "KubeletsApart": "KubeletVersionSkew",
    "LimitBeyondBelief": "ImplausibleLimit",
    "ProvisionerNowhere": "ProvisionerMissing",
    "TemplateLies": "TemplateMismatch",
}
"""Former codes, which filters still accept in this version."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The findings, the most serious first, and the checks that were skipped."""

    findings: tuple[Finding, ...]
    skipped: tuple[CheckKind, ...] = ()
    """The checks that were skipped because objects that they need were not read."""
    not_read: tuple[str, ...] = ()
    """The kinds of objects that the skipped checks need and that were not read."""


def check(cluster: CheckedCluster, codes: Collection[str] = KINDS) -> CheckReport:
    """Run the checks with these codes."""
    wanted = {code for code in codes if _can_run(KINDS[code], cluster)}
    findings = sorted(_findings(cluster, wanted), key=lambda one: one.order)
    skipped = [kind for code, kind in KINDS.items() if code in codes and code not in wanted]
    missing = {one.__name__ for kind in skipped for one in kind.needs if not cluster.has_read(one)}
    return CheckReport(tuple(findings), tuple(skipped), tuple(sorted(missing)))


def _findings(cluster: CheckedCluster, wanted: Collection[str]) -> Iterator[Finding]:
    for kinds, find in GROUPS:
        if any(kind.code in wanted for kind in kinds):
            yield from (one for one in find(cluster) if one.kind.code in wanted)


def _can_run(kind: CheckKind, cluster: CheckedCluster) -> bool:
    return all(cluster.has_read(needed) for needed in kind.needs)
