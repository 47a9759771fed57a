"""What the checks of a cluster found: of which moment, of which kinds, and as data.

`check_data` is what JSON and YAML have; docs/check.md describes the shape, which is stable.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from bayplan.checks import CheckReport, Finding, Severity
from bayplan.checks.cluster import latest_moment
from bayplan.kube import codec
from bayplan.kube.loading import Loaded
from bayplan.kube.meta import KubeObject
from bayplan.kube.times import read_time

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue


TRUE_IN_PART = frozenset({"Pod", "PersistentVolumeClaim", "PodDisruptionBudget", "Lease"})


def moment_of(loaded: Loaded) -> datetime:
    """When a dump was taken: as it says, or the latest moment in it."""
    return read_time(loaded.taken_at) or latest_moment([*loaded.objects, *loaded.events])


def kinds_read(loaded: Loaded) -> frozenset[type[KubeObject]] | None:
    """The kinds of which all was read that counts; None if that must be told by what is there.

    Of pods, claims and budgets of one namespace, what is said is true of that namespace.
    """
    if loaded.read is None:
        return None
    lost = {one.kind for one in loaded.unseen if not one.but_in or one.kind not in TRUE_IN_PART}
    return frozenset(codec.KINDS[name].type for name in loaded.read - lost)


def check_data(report: CheckReport, incomplete: JsonValue) -> JsonValue:
    """All findings, how many there are of each severity, what was not looked for, and what could
    not be read.
    """
    counts = Counter(one.severity for one in report.findings)
    return {
        "summary": {one.value: counts[one] for one in Severity},
        "findings": [_finding(one) for one in report.findings],
        "notChecked": [
            {"code": kind.code, "needs": [one.__name__ for one in kind.needs]}
            for kind in report.unasked
        ],
        "incomplete": incomplete,
    }


def _finding(one: Finding) -> JsonObject:
    return {
        "code": one.kind.code,
        "severity": one.severity.value,
        "about": one.about,
        "message": one.text,
        "why": one.kind.why,
        "advice": one.advice,
        "kind": one.objects,
        "count": one.count,
        "examples": [{"name": example.name, "detail": example.detail} for example in one.examples],
    }
