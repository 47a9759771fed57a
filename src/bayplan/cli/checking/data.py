"""A report as JSON and YAML have it; docs/check.md describes the shape, which is stable."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bayplan.checks import CheckReport, Finding, Severity

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue


def as_data(report: CheckReport, incomplete: JsonValue) -> JsonValue:
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
