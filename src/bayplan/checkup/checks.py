"""All families, asked one after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from bayplan.checkup.families import (
    attachments,
    budgets,
    control,
    drivers,
    groups,
    limits,
    nodes,
    queues,
    sight,
    storage,
    versions,
    waiting,
)
from bayplan.checkup.finding import Finding, Kind
from bayplan.checkup.subject import Subject

Family = Callable[[Subject], Iterable[Finding]]
FAMILIES: tuple[tuple[tuple[Kind, ...], Family], ...] = (
    (nodes.KINDS, nodes.find),
    (limits.KINDS, limits.find),
    (drivers.KINDS, drivers.find),
    (attachments.KINDS, attachments.find),
    (storage.KINDS, storage.find),
    (versions.KINDS, versions.find),
    (waiting.KINDS, waiting.find),
    (queues.KINDS, queues.find),
    (groups.KINDS, groups.find),
    (budgets.KINDS, budgets.find),
    (control.KINDS, control.find),
    (sight.KINDS, sight.find),
)
KINDS: dict[str, Kind] = {kind.code: kind for kinds, _ in FAMILIES for kind in kinds}
"""Every kind of finding, by its code."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, the most serious first, and what could not be looked for."""

    findings: tuple[Finding, ...]
    unasked: tuple[Kind, ...] = ()
    """What could not be looked for, since something that it rests on was not read."""
    unread: tuple[str, ...] = ()
    """The kinds of objects that these rest on and that were not read."""


def check(subject: Subject, codes: Collection[str] = KINDS) -> Report:
    """Look for what these codes stand for."""
    wanted = {code for code in codes if _can_be_asked(KINDS[code], subject)}
    found = sorted(_found(subject, wanted), key=lambda one: one.order)
    unasked = [kind for code, kind in KINDS.items() if code in codes and code not in wanted]
    unread = {one.__name__ for kind in unasked for one in kind.needs if not subject.sees(one)}
    return Report(tuple(found), tuple(unasked), tuple(sorted(unread)))


def _found(subject: Subject, wanted: Collection[str]) -> Iterator[Finding]:
    for kinds, find in FAMILIES:
        if any(kind.code in wanted for kind in kinds):
            yield from (one for one in find(subject) if one.kind.code in wanted)


def _can_be_asked(kind: Kind, subject: Subject) -> bool:
    return all(subject.sees(needed) for needed in kind.needs)
