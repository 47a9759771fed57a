"""The report of `bayplan check`: its time, the kinds that were read, and its data.

`check_data` is the JSON and YAML output, whose stable format docs/check.md describes.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from bayplan.checks import CheckReport, Finding, Severity
from bayplan.checks.cluster import latest_moment
from bayplan.kube import codec
from bayplan.kube.manifests import LoadResult
from bayplan.kube.meta import KubeObject
from bayplan.kube.times import read_time

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue


NAMESPACED = frozenset({"Pod", "PersistentVolumeClaim", "PodDisruptionBudget", "Lease"})


def moment_of(loaded: LoadResult) -> datetime:
    """Return when a dump was taken: as recorded in it, or the latest timestamp in it."""
    return read_time(loaded.taken_at) or latest_moment([*loaded.objects, *loaded.events])


def kinds_read(loaded: LoadResult) -> frozenset[type[KubeObject]] | None:
    """Return the kinds that were read completely; None if a dump does not record it.

    Kinds that were read in one namespace count if their findings are valid for that namespace.
    """
    if loaded.read is None:
        return None
    missing = {
        one.kind
        for one in loaded.unseen
        if not one.readable_namespace or one.kind not in NAMESPACED
    }
    return frozenset(codec.KINDS[name].type for name in loaded.read - missing)


def check_data(report: CheckReport, incomplete: JsonValue) -> JsonValue:
    """Return the findings, their number by severity, skipped checks, and what was not read."""
    counts = Counter(one.severity for one in report.findings)
    return {
        "summary": {one.value: counts[one] for one in Severity},
        "findings": [_finding(one) for one in report.findings],
        "notChecked": [
            {"code": kind.code, "needs": [one.__name__ for one in kind.needs]}
            for kind in report.skipped
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
