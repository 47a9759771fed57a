"""Checks of a cluster: what is wrong with it, why that matters, and what to do next.

Pure functions over the objects of a cluster; nothing is changed. A check group is one file with one
function and a list of the kinds of finding that it may return, from which docs/check.md is
generated.
"""

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import CheckKind, Example, Finding, Severity
from bayplan.checks.registry import KINDS, CheckReport, check

__all__ = [
    "KINDS",
    "CheckKind",
    "CheckReport",
    "CheckedCluster",
    "Example",
    "Finding",
    "Severity",
    "check",
]
