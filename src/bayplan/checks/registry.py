"""All check groups, asked one after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.finding import CheckKind, Finding
from bayplan.checks.groups import (
    attachments,
    budgets,
    control,
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
    (control.KINDS, control.find),
    (unreadable.KINDS, unreadable.find),
)
KINDS: dict[str, CheckKind] = {kind.code: kind for kinds, _ in GROUPS for kind in kinds}
"""Every kind of finding, by its code."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was found, the most serious first, and what could not be looked for."""

    findings: tuple[Finding, ...]
    unasked: tuple[CheckKind, ...] = ()
    """What could not be looked for, since something that it rests on was not read."""
    unread: tuple[str, ...] = ()
    """The kinds of objects that these rest on and that were not read."""


def check(subject: CheckedCluster, codes: Collection[str] = KINDS) -> CheckReport:
    """Look for what these codes stand for."""
    wanted = {code for code in codes if _can_be_asked(KINDS[code], subject)}
    found = sorted(_found(subject, wanted), key=lambda one: one.order)
    unasked = [kind for code, kind in KINDS.items() if code in codes and code not in wanted]
    unread = {one.__name__ for kind in unasked for one in kind.needs if not subject.sees(one)}
    return CheckReport(tuple(found), tuple(unasked), tuple(sorted(unread)))


def _found(subject: CheckedCluster, wanted: Collection[str]) -> Iterator[Finding]:
    for kinds, find in GROUPS:
        if any(kind.code in wanted for kind in kinds):
            yield from (one for one in find(subject) if one.kind.code in wanted)


def _can_be_asked(kind: CheckKind, subject: CheckedCluster) -> bool:
    return all(subject.sees(needed) for needed in kind.needs)
